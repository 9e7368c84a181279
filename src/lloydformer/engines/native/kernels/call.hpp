// The call of a kernel: its arguments by name, and the values that it returns.
//
// Kernels check name, type and shape of every argument before they start, so that a wrong call
// raises an error and writes nothing.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace lloydformer {

enum class Type { float32, float64, int32, int64, uint8, other };

inline const char* name_of(Type type) {
    constexpr const char* names[] = {"float32", "float64", "int32", "int64", "uint8", "other"};
    return names[int(type)];
}

template <class T>
constexpr Type TYPE = Type::other;
template <>
constexpr Type TYPE<float> = Type::float32;
template <>
constexpr Type TYPE<double> = Type::float64;
template <>
constexpr Type TYPE<int32_t> = Type::int32;
template <>
constexpr Type TYPE<int64_t> = Type::int64;
template <>
constexpr Type TYPE<uint8_t> = Type::uint8;

typedef std::vector<int64_t> Shape;
constexpr int64_t ANY = -1;  // a dimension that may have any length

/// A C-contiguous array of the caller.
struct Array {
    void* data;
    Type type;
    bool writable;
    Shape shape;
};

template <class T>
struct View {
    T* data;
    const Shape& shape;

    operator T*() const { return data; }
};

/// Built by the module, read by a kernel. Every kernel reads its arguments before it starts; one
/// that is missing, or has another type or shape, is an std::invalid_argument that says what to
/// pass.
class Call {
  public:
    typedef std::variant<Array, int64_t, double> Value;
    typedef std::variant<bool, int64_t, double> Result;

    void set(std::string name, Value value) {
        arguments_.push_back({std::move(name), std::move(value), false});
    }

    /// An array that the caller's kernel may write; for callers in C++.
    template <class T>
    void set(std::string name, T* data, Shape shape) {
        set(std::move(name), Array{data, TYPE<T>, true, std::move(shape)});
    }

    bool has(const char* name) const { return find(name) != nullptr; }

    /// An array to read. `text` describes the shape in messages.
    template <class T>
    View<const T> in(const char* name, const char* text, std::initializer_list<int64_t> shape) {
        const Array& found = array(name, text, TYPE<T>, shape);
        return {static_cast<const T*>(found.data), found.shape};
    }

    /// An array to write.
    template <class T>
    View<T> out(const char* name, const char* text, std::initializer_list<int64_t> shape) {
        const Array& found = array(name, text, TYPE<T>, shape);
        require(found.writable, name, "pass an array that may be written");
        return {static_cast<T*>(found.data), found.shape};
    }

    int64_t integer(const char* name) {
        const int64_t* found = std::get_if<int64_t>(&value(name, "an int"));
        require(found != nullptr, name, "pass an int");
        return *found;
    }

    bool flag(const char* name) { return integer(name) != 0; }

    double number(const char* name) {
        const Value& found = value(name, "a float");
        if (const int64_t* whole = std::get_if<int64_t>(&found)) return double(*whole);
        require(std::holds_alternative<double>(found), name, "pass a float");
        return std::get<double>(found);
    }

    static void require(bool holds, const char* name, const std::string& repair) {
        if (!holds) throw std::invalid_argument(std::string(name) + ": " + repair);
    }

    /// Raises if the kernel did not read some argument.
    void check_all_read(const std::string& kernel) const {
        for (const Argument& argument : arguments_)
            require(argument.read, argument.name.c_str(), kernel + " does not take this argument");
    }

    std::vector<Result> results;

  private:
    struct Argument {
        std::string name;
        Value value;
        bool read;
    };

    const Argument* find(const char* name) const {
        for (const Argument& argument : arguments_)
            if (argument.name == name) return &argument;
        return nullptr;
    }

    const Value& value(const char* name, const std::string& what) {
        Argument* found = const_cast<Argument*>(find(name));
        if (found == nullptr) require(false, name, "found nothing; pass " + what);
        found->read = true;
        return found->value;
    }

    const Array& array(const char* name, const char* text, Type type,
                       const std::initializer_list<int64_t>& shape) {
        const Array* found = std::get_if<Array>(&value(name, text));
        bool fits = found != nullptr && found->type == type && found->shape.size() == shape.size();
        for (size_t axis = 0; fits && axis < shape.size(); axis++) {
            const int64_t wanted = shape.begin()[axis];
            fits = wanted == ANY || wanted == found->shape[axis];
        }
        if (!fits) require(false, name, message(text, type, found));
        return *found;
    }

    static std::string message(const char* text, Type type, const Array* found) {
        std::string said = std::string("pass ") + text + " of " + name_of(type) + "; found ";
        if (found == nullptr) return said + "a number";
        said += "(";
        for (size_t axis = 0; axis < found->shape.size(); axis++)
            said += (axis == 0 ? "" : ", ") + std::to_string(found->shape[axis]);
        return said + ") of " + name_of(found->type);
    }

    std::vector<Argument> arguments_;
};

}  // namespace lloydformer
