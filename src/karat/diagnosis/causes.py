"""The cause of each miss, looked for in the order of `CAUSES`."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from difflib import SequenceMatcher
from functools import partial
from importlib.util import find_spec
from statistics import median

from rapidfuzz.fuzz import partial_ratio, ratio

from karat.data.tables import counted, steps
from karat.diagnosis.corpus_texts import ALIKE, LexicalRanks, damage, similarity
from karat.diagnosis.diagnosis import BY_WORDS, CAUSES, TEXTS, Miss, Related
from karat.diagnosis.evidence import ENOUGH, MissedItem, RunEvidence
from karat.diagnosis.run_findings import Detection, Reason
from karat.errors import how_to_install

# Search by words finds what it ranks at least so high, and is led somewhere by what it
# ranks in such a share of the corpus.
_GOOD_RANK, _LED = 10, 0.05
# So many letters in common are no accident.
_LONG = 40
# From which share or similarity on a text is nearly the gold's.
_PART, _HALF, _SIMILAR, _NEAR = 0.1, 0.5, 0.7, 0.78
# How alike it must be, and how much more than others, to stand out from them.
_ODD, _MARGIN = 0.55, 0.15
# So many letters of a title may stand before the text of a chunk.
_HEADER = 200
_SHOWN, _FEW_WORDS, _WORDS = 5, 12, 2000


def _wrong_id(evidence: RunEvidence, one: MissedItem) -> Reason | None:
    form, shares = one.form, one.ranked
    if form is None or (shares and not shares.whole and shares.fragments(evidence.k)):
        return None
    ranking = evidence.rankings.get(one.query, ())
    rank = next((r for r, d in enumerate(ranking, 1) if d.id == form.found), None)
    where = f"at rank {rank}" if rank else "in the corpus"
    related = (Related(id=form.found, rank=rank),)
    return Reason(f"{form}, {where}", related, needed_k=rank)


def _damaged(evidence: RunEvidence, one: MissedItem) -> Reason | None:
    """Its text was damaged on the way into the corpus."""
    habits, corpus = evidence.habits, evidence.corpus or {}
    reason: str | None = None
    related: tuple[Related, ...] = ()
    if one.disguise is not None and not (one.homes and one.homes.whole):
        reason = f"{one.disguise!r:.60} has it in look-alike letters"
        related = (Related(id=one.disguise),)
    elif evidence.ids:
        texts = [corpus[name] for name in one.ids if name in corpus]
        question = evidence.questions.get(one.query)
        wrong = [damage(text, question) for text in texts]
        if not any(wrong) and not one.rank and not _is_found_by_words(evidence, one):
            wrong = [habits.doubt(text) for text in texts]
        reason = wrong[0] if wrong and all(wrong) else None
    elif one.homes and not one.homes.whole:
        homes = one.homes
        parts = [n for n in homes.ranked() if homes.share(n) >= _PART]
        if len(parts) == 1 and homes.is_fragment(parts[0]):
            share = homes.share(parts[0])
            related = (homes.related(parts[0], rank=None),)
            reason = f"{related[0].id!r:.60} has {share:.0%} of it, and ends there"
    return Reason(reason, related) if reason else None


def _copy(
    evidence: RunEvidence, one: MissedItem, *, contradicts: bool
) -> Reason | None:
    """A document in the top k that says the same, or nearly and contradicts it."""
    shares = one.ranked
    # Where a gold text is nowhere, this may be it, and the gold be wrong.
    elsewhere = one.rank or (one.homes is not None and one.homes.whole)
    if shares is None or not (evidence.ids or (contradicts and elsewhere)):
        return None
    labels = evidence.gold.documents.get(one.query, {})
    long = len(shares.passage.gold.letters) >= _LONG
    for number in shares.ranked(evidence.k):
        document = shares.documents[number]
        label = labels.get(document.id or "")
        judged = label is not None and (label > 0) == contradicts
        if judged or document.id in one.ids:
            continue
        alike = similarity(shares.gold, document.text or "")
        holds = long and shares.share(number) >= ENOUGH
        differs = shares.differs(number)
        if not (alike >= ALIKE or holds) or bool(differs) != contradicts:
            continue
        how = f"{alike:.0%} alike" if alike >= ALIKE else "contains its text"
        who = "not labelled" if label is None else "labelled as another item"
        where = f"{document.id or 'a text'!r:.60} at rank {number + 1}"
        reason = f"{where} says the same ({how}) and is {who}"
        if contradicts:
            reason = f"{where} is {alike:.0%} alike and contradicts it"
        copy = shares.related(number, rank=number + 1, similarity=alike)
        return Reason(reason, (copy,))
    return None


def _split(evidence: RunEvidence, one: MissedItem) -> Reason | None:
    """The top k has a fragment, and only chunks together the whole."""
    shares, homes = one.ranked, one.homes
    if shares is None or shares.whole or (evidence.ids and one.rank):
        return None
    if homes is not None and homes.whole:
        return None
    every = shares.fragments(None, _HEADER)
    top = [number for number in every if number < evidence.k]
    union = shares.union(every)
    if homes is not None:
        union = max(union, homes.union(homes.fragments(None, _HEADER)))
    elif union < ENOUGH and not one.rank:
        # Nobody knows what other chunks there are: half of it must be here, or
        # the corpus must have the whole and not the chunks.
        top = every = shares.fragments(evidence.k)
        corpus = evidence.corpus
        chunks = [n for n in top if shares.documents[n].id not in (corpus or ())]
        known_whole = corpus is not None and len(chunks) == len(top)
        union = 1.0 if known_whole or shares.union(top) >= _HALF else 0.0
    if not top or union < ENOUGH:
        return None
    part = shares.union(top)
    return Reason(
        f"the top {evidence.k} has {part:.0%} of it, in {counted(len(top), 'chunk')} "
        "cut within it",
        tuple(shares.related(n, rank=n + 1) for n in every[:_SHOWN]),
        {"coverage": part, "union_coverage": shares.union(every)},
    )


def _displaced(evidence: RunEvidence, one: MissedItem) -> Reason | None:
    """It would be in the top k without near-duplicates above it."""
    if not one.rank:
        return None
    above = evidence.rankings.get(one.query, [])[: one.rank - 1]
    first: dict[object, int] = {}
    again = []
    for number, document in enumerate(above):
        key = evidence.groups.get(document.text or "", document.id)
        if key is not None and first.setdefault(key, number) != number:
            again.append((number, first[key]))
    rank = one.rank - len(again)
    if rank > evidence.k:
        return None
    pairs = ((n, above[n], above[other]) for n, other in again[:_SHOWN])
    return Reason(
        f"at rank {one.rank}, and at {rank} without "
        f"{counted(len(again), 'near-duplicate')} of documents above it",
        tuple(
            Related(d.id, n + 1, d.text, similarity(d.text or "", o.text or ""))
            for n, d, o in pairs
        ),
        {"rank_without_duplicates": rank},
    )


def _dropped(evidence: RunEvidence, one: MissedItem) -> Reason | None:
    """The reranker moved it out of the top k or lost it."""
    rank = (evidence.candidates or {}).get(one.query, {}).get(one.name)
    if rank is None or (rank > evidence.k and one.rank):
        return None
    after = f"at rank {one.rank}" if one.rank else "not"
    return Reason(
        f"at rank {rank} of the candidates, and {after} in what came of them",
        facts={"candidate_rank": rank},
    )


def _below(evidence: RunEvidence, one: MissedItem) -> Reason | None:
    if not one.rank:
        return None
    reason, facts = f"at rank {one.rank}, below k = {evidence.k}", {}
    ranking = evidence.rankings.get(one.query, [])
    if one.rank <= len(ranking):
        last, own = ranking[evidence.k - 1].score, ranking[one.rank - 1].score
        if last is not None and own is not None:
            facts = {"score_margin": abs(last - own)}
            reason += f"; its score is {own:.4g}, that at rank {evidence.k} {last:.4g}"
    return Reason(reason, facts=facts)


def _near_miss(evidence: RunEvidence, one: MissedItem) -> Reason | None:
    """A text in the top k is nearly that of the item."""
    shares, homes = one.ranked, one.homes
    if evidence.ids or shares is None:
        return None
    top = {document.id for document in shares.documents[: evidence.k]}
    whole = [] if homes is None else [homes.documents[n].id for n in homes.whole]
    if whole and top.isdisjoint(whole):
        # The corpus has the text as it is: another one is another document.
        return None
    letters = shares.passage.gold.letters
    alike = []
    for text in shares.passage.documents[: evidence.k]:
        # A longer document is as near as the part of it that is most like the gold.
        score = partial_ratio if len(text.letters) > len(letters) else ratio
        short = len(letters) < _LONG // 2
        alike.append(0.0 if short else score(letters, text.letters) / 100)
    best, number = 0.0, -1
    for place, own in enumerate(alike):
        share = shares.share(place)
        # Texts of one kind are all alike: a near miss stands out from the others.
        others = alike[:place] + alike[place + 1 :]
        usual = median(others) if len(others) > 1 else _HALF
        stands_out = own >= max(_ODD, usual + _MARGIN)
        near = max(own, share + _NEAR - _HALF) >= _NEAR or stands_out
        if (near or min(own, 2 * share) >= _SIMILAR) and max(share, own) > best:
            best, number = max(share, own), place
    if number < 0:
        return None
    if homes is not None and not whole and shares.is_fragment(number):
        # It is as it should be as far as it goes: the rest was lost.
        return None
    near_one = shares.related(number, rank=number + 1, similarity=best)
    differs = near_one.differs or _changes(shares.gold, near_one.text or "")
    name = "a text" if near_one.id is None else repr(near_one.id)
    return Reason(
        f"{name} at rank {number + 1} has {best:.0%} of it",
        (replace(near_one, differs=differs),),
        {"similarity": best},
    )


def _absent(evidence: RunEvidence, one: MissedItem) -> Reason | None:
    """The corpus does not have its document, or all of its text."""
    corpus, homes = evidence.corpus or {}, one.homes
    if evidence.ids:
        if one.rank or any(name in corpus for name in one.ids):
            return None
        return Reason("no document of the corpus has this id")
    if homes is None or (union := homes.union()) >= ENOUGH:
        return None
    related = tuple(homes.related(n, rank=None) for n in homes.ranked()[:1])
    closest_one = "".join(f"; the closest is {near.id!r}" for near in related)
    how = "lost in parsing: " if union >= _HALF else ""
    reason = f"{how}the corpus has {union:.0%} of it{closest_one}"
    return Reason(reason, related, {"coverage": union})


def _embedding(evidence: RunEvidence, one: MissedItem) -> Reason | None:
    return _gap(evidence, one) if _is_found_by_words(evidence, one) else None


def _hop(evidence: RunEvidence, one: MissedItem) -> Reason | None:
    """Words of what was found lead to it."""
    words, question = evidence.words, evidence.questions.get(one.query)
    texts = [d.text or "" for d in evidence.hits(one.query, evidence.k)]
    if words is None or question is None or not any(texts):
        return None
    rank = words.rank_beyond(question, texts, _homes(one))
    if rank is None or rank > max(_GOOD_RANK, _LED * len(words)):
        return None
    return Reason(
        f"{one.hits} of {one.relevant} gold items are in the top {evidence.k}, and "
        f"search by their words has it at rank {rank}",
        facts={"hop_rank": rank},
    )


def _doubtful(evidence: RunEvidence, one: MissedItem) -> Reason | None:
    """Nothing leads to it, and what was retrieved is the answer."""
    if (search := _by_words(evidence, one)) is None:
        return None
    words, question, homes = search
    part = f"{one.hits} of {one.relevant} gold items are in the top {evidence.k}"
    if not one.hits:
        first = evidence.rankings[one.query][0]
        if not (rank := words.answers(question, first.id or "")):
            return None
        part = f"{first.id!r:.60} is at rank 1, and at {rank} by words (BM25)"
    if words.leads(question, evidence.other_texts(one), homes):
        return None
    reason = f"it shares almost no words with the question or its gold; {part}"
    return Reason(reason)


def _gap(evidence: RunEvidence, one: MissedItem) -> Reason | None:
    if (search := _by_words(evidence, one)) is None:
        return None
    words, question, homes = search
    rank = words.rank(question, homes)
    if rank is None:
        return Reason("search by words (BM25) does not find it")
    reason = f"search by words (BM25) has it at rank {rank}"
    return Reason(reason, facts={"bm25_rank": rank})


def _never(evidence: RunEvidence, one: MissedItem) -> Reason:
    depth = max(0, evidence.depth[one.query])
    return Reason(f"not among {counted(depth, 'document')} retrieved")


def _homes(one: MissedItem) -> list[str]:
    """The documents of the corpus that have the item, or most of it."""
    if one.homes is None:
        return [*one.ids]
    own = one.homes.whole or one.homes.ranked()
    return [one.homes.documents[n].id or "" for n in own]


def _by_words(
    evidence: RunEvidence, one: MissedItem
) -> tuple[LexicalRanks, str, list[str]] | None:
    """Search by words, what it is asked, and what it should find, where it can."""
    words, question = evidence.words, evidence.questions.get(one.query)
    if words is None or not question or evidence.depth[one.query] <= 0:
        return None
    homes = _homes(one)
    return (words, question, homes) if homes else None


def _is_found_by_words(evidence: RunEvidence, one: MissedItem) -> bool:
    search = _by_words(evidence, one)
    return search is not None and search[0].finds(*search[1:], evidence.k)


def _changes(gold: str, text: str) -> tuple[str, ...]:
    """The first words that a text has in place of others."""
    ours, theirs = gold.split()[:_WORDS], text.split()[:_WORDS]
    mine, other = ([word.casefold() for word in words] for words in (ours, theirs))
    aligned = SequenceMatcher(None, mine, other, autojunk=False)
    changes = [
        f"{' '.join(ours[a:b])} -> {' '.join(theirs[c:d])}"
        for how, a, b, c, d in aligned.get_opcodes()
        if how == "replace" and a > 0 and max(b - a, d - c) <= _FEW_WORDS
    ]
    return tuple(changes[:_SHOWN])


_CHECKS: dict[str, Callable[[RunEvidence, MissedItem], Reason | None]] = {
    "wrong id form": _wrong_id,
    "damaged text": _damaged,
    "unlabelled twin retrieved": partial(_copy, contradicts=False),
    "contradicting copy retrieved": partial(_copy, contradicts=True),
    "split over chunks": _split,
    "displaced by near-duplicates": _displaced,
    "dropped by the reranker": _dropped,
    "below k": _below,
    "near miss in text": _near_miss,
    "not in the corpus": _absent,
    "embedding miss": _embedding,
    "partial multi-hop": _hop,
    "label in doubt": _doubtful,
    "lexical gap": _gap,
    "never retrieved": _never,
}
"""How each cause of a miss is looked for; the others are found in the whole run."""


def examine(evidence: RunEvidence, detections: Mapping[str, Detection]) -> list[Miss]:
    """Each miss with its cause, the first that there is evidence of."""
    misses = []
    lacking = not_examined(evidence)
    checks: dict[str, Callable[[MissedItem], Reason | None]] = {}
    for cause in CAUSES:
        if cause in detections:
            checks[cause] = detections[cause].explains.get
        elif cause in _CHECKS and cause not in lacking:
            checks[cause] = partial(_CHECKS[cause], evidence)
    missed = evidence.missed
    for one in steps(missed, len(missed), "looking for causes"):
        for cause, check in checks.items():
            if why := check(one):
                misses.append(_miss(evidence.k, one, cause, why))
                break
    return misses


def _miss(k: int, one: MissedItem, cause: str, why: Reason) -> Miss:
    best, needed_k = one.ranked or one.homes, why.needed_k or one.rank or None
    fix = CAUSES[cause].action
    if needed_k and needed_k > k:
        fix += f"; k = {needed_k} finds it, too"
    text = best.gold if best else next(iter(one.texts), None)
    rest = one.rank or None, needed_k, text, why.related, why.facts
    return Miss(one.query, one.name, cause, why.reason, fix, *rest)


def not_examined(evidence: RunEvidence) -> dict[str, str]:
    """The causes that need what is not given, and what they need."""
    present = {
        "": True,
        "--corpus": evidence.corpus is not None and not evidence.judged,
        "--candidates": evidence.candidates is not None,
        BY_WORDS: evidence.words is not None,
        TEXTS: evidence.has_texts,
    }
    missing = {
        "--corpus": evidence.corpus is None,
        "the texts of queries (--queries)": not evidence.questions,
        f"search by words ({how_to_install('bm25')})": find_spec("bm25s") is None,
    }
    by_words = " and ".join(filter(missing.get, missing)) or BY_WORDS
    lacking = {}
    for name, cause in CAUSES.items():
        if not present[cause.needs]:
            lacking[name] = by_words if cause.needs == BY_WORDS else cause.needs
    return lacking
