"""How long a search for medoids lasts."""

from lloydformer.plans.medoid_search import EFFORTS


def test_few_rows_and_thorough_searches_have_their_full_patience():
    balanced, thorough = EFFORTS["balanced"], EFFORTS["thorough"]
    assert balanced.patience_for(256, 50) == 5
    assert balanced.patience_for(1000, 50) == 2
    assert thorough.patience_for(1000, 50) == 20
