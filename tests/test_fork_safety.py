"""Cached properties without a lock are cached properties; forks are in engines/test_after_fork."""

from lloydformer.fork_safety import cached_property


class Blocks:
    n_calls = 0

    @cached_property
    def layout(self) -> str:
        """Of the blocks."""
        self.n_calls += 1
        return "host"


class OnDevice(Blocks):
    @cached_property
    def layout(self) -> str:
        return f"copy of {super().layout}"


def test_a_value_is_computed_once_for_each_instance():
    one, other = Blocks(), Blocks()
    assert one.layout is one.layout
    assert (one.n_calls, other.n_calls) == (1, 0)
    assert Blocks.layout.__doc__ == "Of the blocks."


def test_a_value_that_is_made_of_the_one_of_the_base_class_is_kept():
    there = OnDevice()
    assert there.layout == "copy of host"
    assert there.layout == "copy of host"
    assert there.n_calls == 1
