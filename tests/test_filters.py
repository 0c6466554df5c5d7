"""Suggestions under filters: some tags only, never some, what tags are worth, one of a group."""

import numpy as np
import pytest

import longleaf as ll
from tests.helpers.tagging import TEXTS, make_tagger, small


@pytest.fixture(scope="module")
def tagger():
    return make_tagger()


def test_only_and_never_are_the_best_of_what_is_left(tagger):
    everything = tagger.suggest(TEXTS, k=6, tail=1.0)
    only = tagger.suggest(TEXTS, k=2, tail=1.0, only=["fish", "oil", "wine"], never=["wine"])
    never = tagger.suggest(TEXTS, k=3, tail=1.0, never=iter(["duty", "fish"]))
    for row, full in enumerate(everything):
        assert [s.tag for s in only[row]] == [s.tag for s in full if s.tag in ("fish", "oil")]
        assert [s.tag for s in never[row]] == [s.tag for s in full if s.tag not in ("duty", "fish")][:3]


def test_gains_by_tag_multiply_the_probability(tagger):
    plain = {s.tag: s.probability for s in tagger.suggest(TEXTS[:1], k=6)[0]}
    boosted = tagger.suggest(TEXTS[:1], k=6, gain={"quota": 1000.0, "oil": 0.0})[0]
    assert boosted[0].tag == "quota"
    assert boosted[0].score == pytest.approx(1000 * plain["quota"], rel=1e-4)
    assert boosted[0].probability == pytest.approx(plain["quota"], rel=1e-4)
    assert "oil" not in [s.tag for s in boosted]
    with pytest.raises(ValueError, match="tail and gain must not be given together"):
        tagger.suggest(TEXTS[:1], gain={"oil": 1.0}, tail=1.0)
    with pytest.raises(ValueError, match="A of propensity must be at least 0 and at most 100; got 1e"):
        tagger.suggest(TEXTS[:1], only=["oil"], tail=1.0, propensity=(1e308, 1e308))


@pytest.mark.parametrize("k", [1, 2, 3, 6])
def test_of_a_group_only_the_best_tag_is_suggested(tagger, k):
    groups = {"oil": "food", "wine": "food", "fish": "food", "duty": 1, "quota": 1}
    for full, chosen in zip(
        tagger.suggest(TEXTS, k=6), tagger.suggest(TEXTS, k=k, groups=groups), strict=True
    ):
        seen, expected = set(), []
        for suggestion in full:
            group = groups.get(suggestion.tag, suggestion.tag)
            if group not in seen:
                seen.add(group)
                expected.append(suggestion)
        assert [s.tag for s in chosen] == [s.tag for s in expected[:k]]


def test_groups_are_exact_among_many_tags():
    random = np.random.RandomState(3)
    texts = [" ".join(f"w{j}" for j in random.randint(0, 60, 12)) for _ in range(300)]
    tags = [
        sorted({f"t{int(word[1:]) * 3 + i}" for word in text.split()[:2] for i in range(3)}) for text in texts
    ]
    model = ll.Tagger(small(n_trees=3, max_leaf=5)).fit(texts, tags)
    groups = {tag: int(tag[1:]) // 40 for tag in model.classes_}
    for full, chosen in zip(
        model.suggest(texts[:40], k=len(groups), tail=0.5),
        model.suggest(texts[:40], k=4, tail=0.5, groups=groups),
        strict=True,
    ):
        firsts = {groups[s.tag]: s for s in reversed(full)}
        expected = sorted(firsts.values(), key=lambda s: -s.score)[:4]
        assert [s.score for s in chosen] == pytest.approx([s.score for s in expected])


@pytest.mark.parametrize("argument", ["only", "never", "gain", "groups"])
def test_a_filter_must_name_known_tags(tagger, argument):
    value = {"oil": 1, "cheese": 2} if argument in ("gain", "groups") else ["oil", "cheese"]
    with pytest.raises(ValueError, match=f"{argument} must name tags of the model; 'cheese'"):
        tagger.suggest(["a"], **{argument: value})
    with pytest.raises(TypeError, match=r"only must be a list of tags; got a single str"):
        tagger.suggest(["a"], only="oil")
