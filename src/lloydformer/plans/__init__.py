"""Plans: recipes lowered to folds over blocks of points."""
