"""Taggers that go on learning: the same by name."""

import pytest

import longleaf as ll

TEXTS = ["olive oil", "oil of olives", "wheat flour", "flour and wheat", "red wine", "white wine"]
TAGS = [["oil"], ["oil", "fruit"], ["cereals"], ["cereals"], ["wine"], ["wine"]]


def tagger(**params):
    estimator = ll.PLT(**({"n_trees": 1, "random_state": 1, "n_jobs": 1} | params))
    return ll.Tagger(estimator, ll.TextVectorizer(hashing=2**10, min_df=0.0), names={"oil": "Oils"}).fit(
        TEXTS, TAGS
    )


def suggested(model, text, k=1):
    return [suggestion.tag for suggestion in model.suggest([text], k=k)[0]]


def test_a_tagger_learns_new_tags_by_name(tmp_path):
    model = tagger()
    before = list(model.classes_)
    model.save(tmp_path / "t.ll")
    model = ll.load(tmp_path / "t.ll")
    model.partial_fit(["cod and herring", "herring in oil"], [["fish"], ["fish", "oil"]])
    assert list(model.classes_) == [*before, "fish"]
    assert suggested(model, "herring") == ["fish"]
    assert suggested(model, "wheat flour") == ["cereals"]
    model.save(tmp_path / "t2.ll")
    assert suggested(ll.load(tmp_path / "t2.ll"), "herring") == ["fish"]


def test_tags_are_added_renamed_and_removed_by_name():
    model = tagger().add_labels(["beer"])
    assert "beer" not in suggested(model, "white beer", k=10)
    model.add_labels(["fish"], ["cod and herring"], [["fish"]])
    assert list(model.classes_[-2:]) == ["beer", "fish"]
    model.rename_labels({"oil": "fats", "wine": "oil"})
    assert suggested(model, "olive oil") == ["fats"]
    assert suggested(model, "red wine") == ["oil"]
    assert model.names == {"fats": "Oils"}
    model.remove_labels(["fats"])
    assert "fats" not in suggested(model, "olive oil", k=10)
    assert list(model.classes_[-2:]) == ["beer", "fish"]


def test_a_tagger_trains_the_paths_of_a_tag_anew():
    model = tagger().partial_fit(["cod"], [["fish"]])
    model.refit([*TEXTS, "cod"], [*TAGS, ["fish"]], labels=["fish"])
    assert suggested(model, "cod") == ["fish"]
    assert model.estimator_.n_rows_ == 7


def test_a_tagger_says_what_it_cannot_learn():
    model = tagger()
    with pytest.raises(ValueError, match="labels must be new tags; 'oil' is there already"):
        model.add_labels(["oil"])
    with pytest.raises(ValueError, match="'wine' would name two"):
        model.rename_labels({"oil": "wine"})
    with pytest.raises(ValueError, match="labels must name tags of the model; 'tea' is none"):
        model.remove_labels(["tea"])
    flat = ll.Tagger(ll.BR(n_jobs=1)).fit(TEXTS, TAGS)
    with pytest.raises(TypeError, match="estimator must be a PLT to go on learning; got BR"):
        flat.partial_fit(["cod"], [["fish"]])
