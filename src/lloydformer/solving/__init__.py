"""What every fit shares: the loop, its rules, seeding, progress, batches of problems."""
