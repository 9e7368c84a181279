"""The session of all rows, when they are in parts: it asks the holders and merges their answers."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any

import torch
from torch import Tensor

from lloydformer.data.blocks import TensorBlocks
from lloydformer.data.layout import Layout
from lloydformer.engines.chunked import DrawnBy
from lloydformer.engines.native.engine import Native
from lloydformer.engines.native.folds import CHANGES
from lloydformer.engines.parts.answer_log import AnswerLog
from lloydformer.engines.parts.journal import Journal
from lloydformer.engines.parts.labels import LabelsOnParts
from lloydformer.engines.parts.nodes import Node, all_masses, find_node, root, whole
from lloydformer.engines.parts.opening import Opening
from lloydformer.engines.parts.questions import (
    Close,
    Delegate,
    Forget,
    Gather,
    LabelSums,
    Masses,
    PartsQuestion,
    Replay,
    RowsAt,
    RunFold,
    add_all,
    gathered,
    merge_of,
)
from lloydformer.engines.parts.running_sums import RunningSums
from lloydformer.engines.parts.transport import Transport
from lloydformer.plans.medoid_search import MedoidMove
from lloydformer.plans.minibatch import BatchSums
from lloydformer.plans.relocating import Relocated, Relocation, by_folds
from lloydformer.plans.seeding import NewSeed
from lloydformer.plans.session import Fold, Session, Task

_TRIES = 20
"""How often lost state is made again for one question."""


class PartsSession(Session):
    """Points in parts, each of which is opened by the native (or the chunked) engine.

    Folds give the same bits as that engine on all rows in one process. Nothing of size n comes
    here, but for a search for medoids: labels stay with the points (`LabelsOnParts`).
    """

    def __init__(
        self, opening: Opening, transport: Transport, answer_log: AnswerLog | None = None
    ) -> None:
        self.opening, self._transport, self.answer_log = opening, transport, answer_log
        self._journal, self._version, self._clock = Journal(), 0, count(1)
        self._running: RunningSums | None = None
        self._drawn_points = dict[int, Tensor]()  # of the last draw
        self._known_masses: dict[Node, float] | None = None  # if the last fold has found them
        self.resources = ExitStack()
        self._all_here: Session | None = None  # over a copy of all rows, for a search for medoids

    @property
    def layout(self) -> Layout:
        return self.opening.layout

    def fold(self, fold: Fold) -> Any:
        with self._all_or_forgotten():
            if self.opening.single:
                return self._delegated("fold", fold)
            return self._fold(fold, plain=False)

    def run(self, task: Task) -> Any | None:
        if self.opening.single:
            with self._all_or_forgotten():
                return self._delegated("run", task)
        if isinstance(task, MedoidMove):
            return self._medoid_move(task)
        if isinstance(task, BatchSums):
            batch = partial(self._batch_sums, task)
            return batch() if self.answer_log is None else self.answer_log.answer(task, batch)
        return self._relocated(task) if isinstance(task, Relocation) else None

    def gather(self, rows: Tensor) -> Tensor:
        known = [self._drawn_points.get(row) for row in rows.tolist()]
        if all(point is not None for point in known):
            return torch.stack([point for point in known if point is not None])
        return gathered(self.ask(Gather(rows=rows)), len(rows))[0]

    def draw_by_distance(self, fractions: Tensor) -> Tensor:
        if self.opening.single:
            return self._told("draw_by_distance", fractions)
        return self._noted(("distance", fractions), lambda: self._by_distance(fractions))

    def draw_by_weight(self, fractions: Tensor) -> Tensor:
        if self.opening.single:
            return self._told("draw_by_weight", fractions)
        return self._noted(("weight", fractions), lambda: self._by_weight(fractions))

    def labels(self) -> Any:
        """The labels of all points, as `LabelsOnParts`: they stay where they are."""
        return LabelsOnParts(self, self._journal.folds_for({"labels", "trimmed"}))

    def trimmed(self) -> Tensor | None:
        """None: `labels` knows which points are trimmed."""
        return None

    def forget(self) -> None:
        self._running = None
        self._change(Forget())

    def snapshot(self) -> tuple[Any, ...]:
        """All that the session knows and cannot ask the parts for; small."""
        return self._journal.entries, self._version, self._running

    def restore(self, snapshot: tuple[Any, ...]) -> None:
        """Become the session of a snapshot. The parts make their state again when asked."""
        self._journal.entries, self._version, self._running = snapshot
        self._clock, self._known_masses = count(self._version + 1), None
        self._drawn_points = {}

    def ask(self, question: PartsQuestion) -> list[Any]:
        """What all parts find. Parts whose state was lost make it again, and are asked again."""
        found: list[Any] = []
        for _ in range(_TRIES):
            answers = self._transport.ask(question)
            found += [answer.found for answer in answers if answer.found is not None]
            lost = frozenset(number for answer in answers for number in answer.lost)
            if not lost:
                return found
            again = Replay(following=self._version, only=lost, entries=self._journal.entries)
            self._transport.ask(again)
            question = replace(question, only=lost)
        raise RuntimeError(f"parts {sorted(lost)} were lost {_TRIES} times in one iteration")

    def _change(self, question: PartsQuestion) -> list[Any]:
        """Ask a question that changes the state of the points; not, if it is a declined task."""
        following, self._known_masses = next(self._clock), None
        found = self._recorded(replace(question, version=self._version, following=following))
        if found or not isinstance(question, Delegate):
            self._journal.note(question)
        self._version = following
        return found

    def _read(self, question: PartsQuestion) -> list[Any]:
        """Ask a question that reads the state of the points."""
        return self._recorded(replace(question, version=self._version))

    def _now(self, question: PartsQuestion) -> list[Any]:
        """As `_read`, but always of the parts themselves: the answer depends on the cut."""
        return self.ask(replace(question, version=self._version))

    def _recorded(self, question: PartsQuestion) -> list[Any]:
        """What all parts find, or have found in a fit that was killed."""
        if self.answer_log is None:
            return self._found(question)
        return self.answer_log.answer(
            question, lambda: self._merged(question, self._found(question))
        )

    def _noted(self, asked: Any, find: Callable[[], Any]) -> Any:
        """What `find` returns, or has returned in a fit that was killed.

        For results that depend on the state of the points, but not on how the rows are cut.
        """
        if self.answer_log is None:
            return find()
        return self.answer_log.answer((asked, self._version), find)

    def _found(self, question: PartsQuestion) -> list[Any]:
        """What all parts find; of a new seed the masses of their nodes are kept for a draw."""
        found = self.ask(question)
        fold = question.fold if isinstance(question, RunFold) else None
        if isinstance(fold, NewSeed) and self._kernel(fold, found) is not None:
            masses = {node: mass for some, _ in found for node, (mass,) in some.items()}
            self._known_masses = {node: mass.item() for node, mass in masses.items()}
        return found

    def _kernel(self, fold: Fold, found: list[Any]) -> Any:
        """The kernel that has run a fold on the parts; None if they have run it without."""
        return None if found[0][1] else self.opening.kernel(fold)

    def _merged(self, question: PartsQuestion, found: list[Any]) -> list[Any]:
        """The summary of all rows in place of those of the parts, as far as it is enough."""
        if not isinstance(question, RunFold):
            return found
        plain, fold = found[0][1], question.fold
        assert fold is not None
        merge = merge_of(self.opening, fold, plain)
        summary = self._whole(merge, [nodes for nodes, _ in found])
        return [({root(self.layout.n_leaves): summary}, plain)]

    @contextmanager
    def _all_or_forgotten(self) -> Iterator[None]:
        """After an error no part has the state that it should have, so it is made again."""
        try:
            yield
        except BaseException:
            self._running, self._version = None, next(self._clock)
            self._journal.note(Forget())
            raise

    def _delegated(self, method: str, *arguments: Any) -> Any:
        """Call a method that changes state, where all rows are one node."""
        found = self._change(Delegate(method=method, arguments=arguments))
        return found[0] if found else None

    def _told(self, method: str, *arguments: Any) -> Any:
        """Call a method that reads state, where all rows are one node."""
        (found,) = self._read(Delegate(method=method, arguments=arguments))
        return found

    def _fold(self, fold: Fold, *, plain: bool) -> Any:
        found = self._change(RunFold(fold=fold, plain=plain))
        merge = merge_of(self.opening, fold, found[0][1])
        raw = self._whole(merge, [nodes for nodes, _ in found])
        kernel = self._kernel(fold, found)
        if kernel is None:
            return raw
        if kernel is CHANGES:
            return self._moved(raw)
        summary = kernel.finish(fold, raw)
        return kernel.instead(self._fold(fold, plain=True), raw) if summary is None else summary

    def _whole(self, merge: Any, found: list[dict[Node, Any]]) -> Any:
        nodes = {node: summary for some in found for node, summary in some.items()}
        return whole(merge, nodes, self.layout.n_leaves)

    def _moved(self, raw: Any) -> tuple[Tensor, Tensor, Tensor]:
        """The summary of `Nearest`, from the changes of all parts."""
        *changes, changed, fresh = raw
        k, d = changes[0].shape
        if self._running is None or fresh:
            self._running = RunningSums(k, d)
        self._running.add(*changes)
        if self._running.imprecise:
            sums = self._whole(add_all, self._read(LabelSums(n_clusters=k)))
            self._running = RunningSums(k, d)
            self._running.add(*sums)
        return self._running.sums, self._running.masses, changed

    def _batch_sums(self, task: BatchSums) -> Any:
        """The rows of a mini-batch come here, where the same kernel runs as on all rows."""
        with self.opening.engine_with(1).open(self._brought(task.rows)) as session:
            return session.run(replace(task, rows=torch.arange(len(task.rows))))

    def _medoid_move(self, task: MedoidMove) -> Any | None:
        """All rows come here, once, where the same kernels run as in one process."""
        if self.opening.engine != "native":
            return None
        if self._all_here is None:
            rows = self._brought(torch.arange(self.layout.n_rows))
            self._all_here = self.resources.enter_context(Native().open(rows))
        return self._all_here.run(task)

    def _brought(self, rows: Tensor) -> TensorBlocks:
        """A copy of some rows in this process."""
        return self.opening.few(*gathered(self.ask(Gather(rows=rows, seen=False)), len(rows)))

    def _relocated(self, task: Relocation) -> Relocated:
        """By folds with a state of their own, as that of the native engine's kernel is."""
        beside = PartsSession(self.opening, self._transport.fork(), self.answer_log)
        found = by_folds(beside, task.centers, task.n_moved, task.draws)
        beside.ask(Close())
        return found

    def _by_distance(self, fractions: Tensor) -> Tensor:
        masses = self._known_masses or self._masses("distance")
        every = all_masses(masses, self.layout.n_leaves)
        total = every[root(self.layout.n_leaves)]
        found = [self._find(masses, every, fraction * total) for fraction in fractions.tolist()]
        asked = {node: [rest for at, rest in found if at == node] for node, _ in found}
        rows = self._rows_at("distance", (), asked)
        taken = {node: iter(rows[node]) for node in rows}
        return torch.tensor([next(taken[node]) for node, _ in found])

    def _by_weight(self, fractions: Tensor) -> Tensor:
        masses, drawn = self._masses("weight"), list[int]()
        for fraction in fractions.tolist():
            every = all_masses(masses, self.layout.n_leaves)
            target = fraction * every[root(self.layout.n_leaves)]
            node, rest = self._find(masses, every, target)
            drawn += self._rows_at("weight", tuple(drawn), {node: [rest]})[node]
            masses |= self._masses("weight", tuple(drawn), frozenset({node}))
        return torch.tensor(drawn)

    def _masses(
        self, by: DrawnBy, drawn: tuple[int, ...] = (), nodes: frozenset[Node] | None = None
    ) -> dict[Node, float]:
        found = self._now(Masses(by=by, drawn=drawn, nodes=nodes))
        return {node: mass for some in found for node, mass in some.items()}

    def _find(
        self, own: dict[Node, float], every: dict[Node, float], target: float
    ) -> tuple[Node, float]:
        return find_node(every, own, target, self.layout.n_leaves)

    def _rows_at(
        self, by: DrawnBy, drawn: tuple[int, ...], asked: dict[Node, list[float]]
    ) -> dict[Node, list[int]]:
        targets = tuple((node, tuple(rests)) for node, rests in asked.items())
        found = self._now(RowsAt(by=by, drawn=drawn, targets=targets))
        nodes = {node: each for some in found for node, each in some.items()}
        pairs = (pair for rows, points in nodes.values() for pair in zip(rows, points, strict=True))
        self._drawn_points = dict(pairs)
        return {node: rows for node, (rows, _) in nodes.items()}
