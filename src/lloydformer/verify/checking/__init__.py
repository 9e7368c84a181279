"""`lloydformer check`: a user's recipe against a user's plain algorithm."""
