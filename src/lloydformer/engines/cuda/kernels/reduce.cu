// Adds the rows of `partial` (blocks, numbers) in their order, a thread for each number: so sums in
// float64 have the same bits every time.
extern "C" __global__ void add_rows(const double* partial, int blocks, int numbers, double* sums) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= numbers) return;
    double sum = 0;
#pragma unroll 8
    for (int b = 0; b < blocks; b++) sum += partial[(size_t)b * numbers + i];
    sums[i] = sum;
}
