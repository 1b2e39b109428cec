"""Questions from a corpus: checks fire where faults are planted, and only there."""

import json
import random
from collections import Counter
from hashlib import sha256
from pathlib import Path

import pytest

import karat
from karat.extend import (
    DryRun,
    IncompleteError,
    OfflineMissError,
    Settings,
    UsageError,
)
from tests.generating.scripted import EXPECTED, FAULTS, Scripted, World, texts_in

NOTHING_KEPT = Settings(journal=None)
OF_TWO = ("one passage", "one named")


def planted(places: range, faults: tuple[str, ...]) -> dict[int, str]:
    """Faults of every kind at random places, in two of five."""
    chance = random.Random(7)
    chosen = chance.sample(places, len(places) * 2 // 5)
    return {n: faults[turn % len(faults)] for turn, n in enumerate(sorted(chosen))}


def test_every_check_fires_where_its_fault_is_and_nowhere_else() -> None:
    faults = planted(range(500), tuple(f for f in FAULTS if f not in OF_TWO))
    world, count = World(500, faults), Counter(faults.values())
    # Of the questions that repeat each other the first is sound.
    sound = 500 - len(faults) + 1
    questions = karat.generate(
        world.corpus, sound, model=Scripted(world), hops=[1], settings=NOTHING_KEPT
    )
    assert len(questions.queries) == sound
    assert len(questions.dropped) == len(faults) - 1
    kept = {query.text for query in questions.queries.values()}
    without_fault = {world.question(n) for n in range(500) if n not in faults}
    assert without_fault < kept
    by_question = {world.question(n): fault for n, fault in faults.items()}
    for text, check, reason in questions.dropped:
        if text:
            fault = by_question[text]
            assert check == EXPECTED.get(fault, fault), (text, reason)
    assert questions.counts["reply"] == count["forged"]
    assert questions.counts["empty"] == count["empty"]
    assert questions.counts["unique"] == count["duplicate"] - 1
    assert str(questions).startswith(f"asked 500, kept {sound}: ")


def test_two_passages_are_both_needed() -> None:
    links = {n: f"builder{chr(97 + n // 2 % 26)}{'xyz'[n // 52]}" for n in range(60)}
    faults = {n: OF_TWO[n % 2] for n in range(20)}
    world = World(60, faults, links)
    questions = karat.generate(
        world.corpus, 30, model=Scripted(world), hops=[2], settings=NOTHING_KEPT
    )
    assert {query.tags[0] for query in questions.queries.values()} == {"hops-2"}
    firsts = {world.asked(query.text or "") for query in questions.queries.values()}
    assert firsts.isdisjoint(faults)
    assert {*questions.counts} == {"one passage", "unique"} or {*questions.counts} == {
        "one passage"
    }
    for query in questions.queries:
        assert [grade for grade in questions.gold.documents[query].values() if grade]
        assert len(questions.gold.spans[query]) >= 2
        assert {s.document for s in questions.gold.spans[query]} <= {*world.corpus}


def test_gold_is_completed_by_what_the_judge_finds_relevant() -> None:
    world = World(60, {})
    asked: list[str] = []

    def search(query: str, k: int) -> list[str]:
        asked.append(query)
        n = world.asked(query)
        return [f"d{(n + step) % 60}" for step in range(k)]

    questions = karat.generate(
        world.corpus,
        10,
        model=Scripted(world),
        hops=[1],
        retrievers=[search],
        settings=NOTHING_KEPT,
    )
    assert len(asked) == 10
    for query in questions.queries.values():
        n = world.asked(query.text or "")
        labels = questions.gold.documents[query.id]
        # The seed and the next four; most of them are not relevant, so that is all.
        assert {f"d{(n + step) % 60}" for step in range(5)} <= {*labels}
        for name, grade in labels.items():
            label = world.label(n, int(name[1:]))
            assert grade == (label if label >= 2 else 0)


def test_a_retriever_of_other_documents_is_refused() -> None:
    world = World(20, {})
    with pytest.raises(
        karat.KaratError, match="returns 'x1', which the corpus does not"
    ):
        karat.generate(
            world.corpus,
            2,
            model=Scripted(world),
            retrievers=[lambda _: ["x1"]],
            settings=NOTHING_KEPT,
        )


def test_the_file_is_gold_as_it_is(tmp_path: Path) -> None:
    world = World(40, {})
    questions = karat.generate(
        world.corpus,
        12,
        model=Scripted(world),
        judge=Scripted(world, "other"),
        settings=NOTHING_KEPT,
    )
    path = tmp_path / "questions.jsonl"
    questions.save(path)
    gold = karat.read_gold(path)
    assert gold.documents == questions.gold.documents
    assert gold.spans == questions.gold.spans
    assert gold.claims == questions.gold.claims
    assert gold.references == questions.gold.references
    assert {*gold.labellers()} == {"judge:other", "judge:scripted"}
    run = {query: [*row] for query, row in gold.documents.items()}
    assert karat.evaluate(run, gold=path, metrics=["recall@10"])["recall@10"].mean == 1
    # Another cut of the same texts finds the same spans.
    halves = {
        query: [
            {"id": f"{span.document}-{part}", "text": text}
            for span in gold.spans[query]
            for part, text in enumerate(
                [(span.text or "")[:70], (span.text or "")[60:]]
            )
        ]
        for query in gold.queries
    }
    cut = karat.evaluate(halves, gold=path, metrics=["recall@10"], match="span")
    assert cut["recall@10"].mean == 1


def test_what_people_checked_is_said_with_every_result(tmp_path: Path) -> None:
    world = World(60, {})
    path = tmp_path / "questions.jsonl"
    karat.generate(
        world.corpus, 50, model=Scripted(world), hops=[1], settings=NOTHING_KEPT
    ).save(path)
    records = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    run = {record["id"]: ["d1", "d2"] for record in records}

    def notice() -> list[str]:
        result = karat.evaluate(run, gold=path, metrics=["mrr"])
        return [str(one) for one in result.warnings if one.kind == "checked"]

    drawn = [row["metadata"] for row in records if "checked" in row["metadata"]]
    assert (len(drawn), notice()) == (30, [])
    for place, metadata in enumerate(drawn):
        metadata["checked"] = "bad" if place < 3 else "good"
    path.write_text("\n".join(map(json.dumps, records)), "utf-8")
    # Clopper and Pearson: 0.7347 .. 0.9789.
    said = "30 questions were checked by people: 90% are good, 95% interval 73% to 98%"
    assert notice() == [said]


def test_spans_are_offsets_in_the_source_of_a_chunk(tmp_path: Path) -> None:
    world = World(6, {})
    book = "Preface.\n" + "\n".join(world.corpus.values())
    records = [
        {"id": name, "text": text, "source": "book", "start": book.index(text)}
        for name, text in world.corpus.items()
    ]
    records[0]["title"] = "A title in front"
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text("".join(json.dumps(record) + "\n" for record in records))
    questions = karat.generate(
        corpus, 6, model=Scripted(world), hops=[1], settings=NOTHING_KEPT
    )
    spans = [span for row in questions.gold.spans.values() for span in row]
    assert {span.document for span in spans} == {"book"}
    for span in spans:
        assert book[span.start : span.end] == span.text


def test_a_long_document_is_cut_and_each_passage_asked_about() -> None:
    world = World(40, {})
    long = " ".join(world.corpus[f"d{n}"] for n in range(30))
    questions = karat.generate(
        {"long": long, **{f"d{n}": world.corpus[f"d{n}"] for n in range(30, 40)}},
        11,
        model=Scripted(world),
        hops=[1],
        settings=NOTHING_KEPT,
    )
    spans = [row[0] for row in questions.gold.spans.values()]
    # Each source once before any of them twice.
    assert len({span.document for span in spans}) == 11
    (part,) = (span for span in spans if span.document == "long")
    assert long[part.start : part.end] == part.text
    assert len(part.text or "") <= 1500


def test_near_duplicates_are_asked_about_once() -> None:
    world = World(12, {})
    copies = {f"{name}-copy": f"{text} " for name, text in world.corpus.items()}
    model = Scripted(world)
    questions = karat.generate(
        {**copies, **world.corpus}, 36, model=model, hops=[1], settings=NOTHING_KEPT
    )
    # In the second and third style the script repeats itself.
    assert str(questions) == "asked 36, kept 12: 24 duplicate"
    assert [notice.kind for notice in questions.notices] == ["same model", "missing"]
    # The copy of a passage is found, and graded.
    assert all(len(row) > 1 for row in questions.gold.documents.values())


def test_the_same_call_says_the_same_and_another_seed_something_else(
    tmp_path: Path,
) -> None:
    world = World(100, planted(range(100), FAULTS[:8]))
    texts = []
    for seed in (0, 0, 1):
        questions = karat.generate(
            world.corpus, 20, model=Scripted(world), seed=seed, settings=NOTHING_KEPT
        )
        questions.save(tmp_path / "questions.jsonl")
        texts.append((tmp_path / "questions.jsonl").read_text("utf-8"))
    assert texts[0] == texts[1] != texts[2]


def test_a_limit_stops_it_and_the_same_call_goes_on(tmp_path: Path) -> None:
    world = World(60, planted(range(60), FAULTS[:8]))
    model = Scripted(world)
    whole = karat.generate(
        world.corpus, 20, model=Scripted(world), settings=NOTHING_KEPT
    )
    journal = tmp_path / "journal.sqlite"
    stops = 0
    while True:
        try:
            questions = karat.generate(
                world.corpus,
                20,
                model=model,
                settings=Settings(journal=journal, max_calls=25, concurrency=1),
            )
            break
        except IncompleteError:
            stops += 1
    assert stops > 2
    assert questions.to_dict() == whole.to_dict()
    complete = Scripted(world)
    karat.generate(world.corpus, 20, model=complete, settings=NOTHING_KEPT)
    assert model.calls == complete.calls
    offline = Settings(journal=journal, offline=True)
    again = karat.generate(world.corpus, 20, model=model, settings=offline)
    assert again.to_dict() == whole.to_dict()
    with pytest.raises(OfflineMissError, match="writing"):
        karat.generate(world.corpus, 20, model=model, seed=9, settings=offline)


def test_queries_of_people_are_shown_and_never_repeated(tmp_path: Path) -> None:
    world = World(40, {})
    log = tmp_path / "log.txt"
    log.write_text(f"{world.question(3)}\nbridge repair cost\n\nold stone arch\n")
    shown: Counter[str] = Counter()

    class Watched(World):
        def write(self, texts: dict[str, list[str]]) -> dict[str, object]:
            shown.update(texts["query"])
            return super().write(texts)

    watched = Watched(40, {})
    questions = karat.generate(
        watched.corpus,
        40,
        model=Scripted(watched),
        hops=[1],
        style=log,
        settings=NOTHING_KEPT,
    )
    assert {*shown} == {world.question(3), "bridge repair cost", "old stone arch"}
    assert str(questions) == "asked 40, kept 39: 1 duplicate"
    assert {query.tags[1] for query in questions.queries.values()} == {"log"}
    with pytest.raises(UsageError, match="no query to word questions like"):
        karat.generate(world.corpus, model=Scripted(world), style=["  "])


def test_a_second_judge_must_agree() -> None:
    world = World(40, {})
    strict = World(40, dict.fromkeys(range(0, 40, 2), "not firm"))
    questions = karat.generate(
        world.corpus,
        20,
        model=Scripted(world),
        judge=Scripted(world, "judge"),
        second_judge=Scripted(strict, "strict"),
        hops=[1],
        settings=NOTHING_KEPT,
    )
    assert questions.notices == []
    assert questions.counts.keys() == {"firm"}
    assert all(world.asked(q.text or "") % 2 for q in questions.queries.values())


def test_a_dry_run_asks_nobody_and_says_what_it_would_take() -> None:
    world = World(60, {})
    model = Scripted(world)
    session = DryRun(model, NOTHING_KEPT)
    karat.generate(world.corpus, 10, model=session, hops=[1])
    assert not model.calls
    # Written, read alone, supported twice; and five graded, of which one is its own.
    assert session.total.calls == 10 * (1 + 1 + 2 + 4)


def test_wrong_parameters_are_named() -> None:
    world = World(5, {})
    with pytest.raises(UsageError, match="n must be an integer >= 1, got 0"):
        karat.generate(world.corpus, 0, model=Scripted(world))
    with pytest.raises(UsageError, match="hops must be 1, 2 or both"):
        karat.generate(world.corpus, 5, model=Scripted(world), hops=[3])


def test_a_changed_wording_needs_a_new_version() -> None:
    world = World(30, {}, dict.fromkeys(range(2), "quernstone"))
    model = Scripted(world)
    karat.generate(world.corpus, 10, model=model, settings=NOTHING_KEPT)
    systems = {p.system for p in model.asked if p.name in ("write", "alone")}
    assert {p.version for p in model.asked if p.name in ("write", "alone")} == {"1"}
    # Three styles, for one passage and for two; and the question alone.
    digest = sha256(repr(sorted(systems)).encode()).hexdigest()[:12]
    assert (len(systems), digest) == (7, "7fc4629e48e6")


def test_what_is_shown_to_models_is_fenced() -> None:
    world = World(5, {})
    prompts: list[str] = []

    def model(prompt: str) -> str:
        prompts.append(prompt)
        return json.dumps(world.answer(prompt))

    karat.generate(world.corpus, 1, model=model, hops=[1], settings=NOTHING_KEPT)
    assert [*texts_in(prompts[0])] == ["passage"]
    assert [*texts_in(prompts[1])] == ["question"]
