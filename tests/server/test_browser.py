"""The page in a real browser: the system's chromium, driven by Playwright (``make test-browser``)."""

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from longleaf.explain.packed import Strings
from tests.helpers import encoders as helper
from tests.helpers.serving import WORDS, Running, make_tagger, make_vector_model, serving
from tests.server.records import make_record_tagger

pytest.importorskip("uvicorn", reason="needs the extra serve")
playwright = pytest.importorskip("playwright.sync_api", reason="needs Playwright: make test-browser")

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
if CHROMIUM is None:
    pytest.skip("needs chromium: make test-browser", allow_module_level=True)

PATIENCE_MS = 60_000
HOSTILE = "<b>bold</b> <img src=x onerror=alert(1)> & more"
RECORD = {"title": "virgin olive oil", "text": "the import of olive and saffron from the mill"}
TEXT = "The catch of cod and herring, and virgin olive oil 𝕏 for the mill"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("page")
    tagger = make_tagger(keep_records=True)
    assert tagger.records_ is not None
    tagger.records_ = replace(tagger.records_, titles=Strings.pack([HOSTILE] * len(tagger.records_)))
    tagger.save(folder / "tagger.ll")
    with serving(folder / "tagger.ll", "--feedback", folder / "feedback.jsonl") as running:
        yield running


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        sandbox = [] if os.getuid() else ["--no-sandbox"]  # chromium has none for root
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=sandbox, timeout=PATIENCE_MS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def record_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("records")
    make_record_tagger().save(folder / "tagger.ll")
    with serving(folder / "tagger.ll", "--feedback", folder / "feedback.jsonl") as running:
        yield running


@pytest.fixture
def page(browser: Any, service: Running) -> Iterator[Any]:
    yield from opened(browser, service)


@pytest.fixture
def record_page(browser: Any, record_service: Running) -> Iterator[Any]:
    yield from opened(browser, record_service)


def opened(browser: Any, service: Running, **options: Any) -> Iterator[Any]:
    """Open the page; whatever it complains about on the console fails the test, and so does another host."""
    context = browser.new_context(reduced_motion="reduce", **options)
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda line: line.type == "error" and complaints.append(line.text))
    page.on("request", lambda one: one.url.startswith(service.url) or complaints.append(one.url))
    page.goto(service.url)
    page.wait_for_function("() => document.getElementById('facts').textContent")
    yield page
    context.close()
    assert complaints == []


def tags(page: Any) -> list[str]:
    found: list[str] = page.eval_on_selector_all("#list .item", "all => all.map(one => one.dataset.tag)")
    return found


def settled(page: Any, wanted: list[str]) -> None:
    page.wait_for_function(
        "wanted => JSON.stringify([...document.querySelectorAll('#list .item')].map(one => one.dataset.tag))"
        " === wanted && !document.querySelector('#list.stale')",
        arg=json.dumps(wanted, separators=(",", ":")),
    )


def test_suggestions_come_as_one_types_and_the_dial_reorders_them(page: Any, service: Running) -> None:
    page.locator("#text").press_sequentially("stigma olive")
    popular = [one["tag"] for one in service.suggest(["stigma olive"], k=10, tail=0)[0]]
    settled(page, popular)
    first = page.locator("#list .item").first
    assert "olive oil" in first.inner_text()
    assert "%" in first.inner_text()
    assert "score" in first.inner_text()
    assert "head" in first.inner_text()
    page.locator("#tail").fill("1")
    rare = [one["tag"] for one in service.suggest(["stigma olive"], k=10, tail=1)[0]]
    assert rare != popular, "the dial must have something to do"
    settled(page, rare)
    assert page.locator("#tail-value").inner_text() == "1"


def test_a_click_colours_the_words_that_added_something(page: Any) -> None:
    page.fill("#text", TEXT)
    page.locator(".item[data-tag='1264'] .toggle").click()
    page.wait_for_selector("#backdrop mark.for")
    coloured = page.eval_on_selector_all("#backdrop mark.for", "all => all.map(one => one.textContent)")
    assert "olive" in coloured
    assert set(coloured) <= set(TEXT.replace(",", "").split())
    assert page.locator("#backdrop").text_content().rstrip("\n") == TEXT
    assert "olive" in page.locator(".item.open .words").inner_text()
    page.locator(".item[data-tag='1264'] .toggle").click()
    assert page.locator("#backdrop mark").count() == 0


def test_a_click_shows_similar_training_records_as_plain_text(page: Any) -> None:
    page.fill("#text", TEXT)
    page.locator(".item[data-tag='1264'] .toggle").click()
    page.wait_for_selector(".item.open .records li")
    lines = page.locator(".item.open .records li")
    assert 1 <= lines.count() <= 3
    assert HOSTILE in lines.first.text_content()
    assert page.locator(".records b, .records img").count() == 0


def test_colours_lie_under_their_words(page: Any) -> None:
    page.fill("#text", (TEXT + "\n") * 40)
    page.locator(".item .toggle").first.click()
    page.wait_for_selector("#backdrop mark.for")
    sizes = page.evaluate(
        "['#text', '#backdrop'].map(id => document.querySelector(id))"
        ".map(e => [e.clientWidth, e.scrollHeight])"
    )
    assert sizes[0] == sizes[1]
    page.evaluate("document.getElementById('text').scrollTop = 300")
    page.wait_for_function("() => document.getElementById('backdrop').scrollTop === 300")


def fill(page: Any, record: dict[str, str]) -> None:
    page.fill("#field-0", record["title"])
    page.fill("#text", record["text"])


def test_a_model_of_plain_texts_has_one_input(page: Any) -> None:
    assert page.locator("textarea").count() == 1
    assert page.locator("label[for=text]").inner_text() == "Text"
    assert page.locator("#fields").is_hidden()


def test_each_field_of_the_model_has_an_input_and_the_last_is_the_large_one(
    record_page: Any, record_service: Running
) -> None:
    page = record_page
    assert [page.locator(f"label[for={name}]").inner_text() for name in ("field-0", "text")] == [
        "title",
        "text",
    ]
    page.keyboard.type("On saffron")  # the first field has the focus
    title_only = {"title": "On saffron", "text": ""}
    settled(page, [one["tag"] for one in record_service.suggest([title_only], k=10, tail=0)[0]])
    low, high = (page.locator(f"#{name}").bounding_box()["height"] for name in ("field-0", "text"))
    assert low < 60 < 200 < high
    fill(page, RECORD)
    settled(page, [one["tag"] for one in record_service.suggest([RECORD], k=10, tail=0)[0]])
    page.fill("#field-0", "olive oil " * 12)
    assert low < page.locator("#field-0").bounding_box()["height"] < 160, "it grows with its text"


def test_a_click_colours_the_words_of_each_field(record_page: Any) -> None:
    page = record_page
    fill(page, RECORD)
    page.locator(".item[data-tag='1264'] .toggle").click()
    page.wait_for_selector("#backdrop mark.for")
    for field in RECORD:
        backdrop = page.locator("#fields .backdrop" if field == "title" else "#backdrop")
        assert backdrop.text_content().rstrip("\n") == RECORD[field]
        words = backdrop.locator("mark").all_text_contents()
        assert words
        assert set(words) <= set(RECORD[field].split())
    strengths = page.eval_on_selector_all(
        "mark.for", "all => all.filter(one => one.textContent === 'olive').map(one => one.style.cssText)"
    )
    assert len(set(strengths)) == 2, "a word of the title weighs more"
    assert page.locator("#legend").inner_text() == "supports counts against"
    page.locator(".item[data-tag='1264'] .toggle").click()
    assert page.locator(".backdrop mark").count() == 0


def test_colours_lie_under_the_words_of_a_short_field(record_page: Any) -> None:
    page = record_page
    fill(page, {"title": "On virgin olive oil\n" * 20, "text": "cod"})
    page.locator(".item[data-tag='1264'] .toggle").click()
    page.wait_for_selector("#fields mark.for")
    sizes = page.evaluate(
        "[...document.querySelector('#fields .editor').children]"
        ".map(e => [e.clientWidth, e.clientHeight, e.scrollHeight])"
    )
    assert sizes[0] == sizes[1]
    page.evaluate("document.getElementById('field-0').scrollTop = 100")
    page.wait_for_function("() => document.querySelector('#fields .backdrop').scrollTop === 100")


def test_the_name_of_a_tag_in_a_field_is_said(record_page: Any, record_service: Running) -> None:
    record = {"title": "olive oil", "text": "the catch of cod and herring, meeting agenda"}
    found = record_service.call("/v1/explain", {"text": record, "tag": "1264"}).json
    fill(record_page, record)
    record_page.locator(".item[data-tag='1264'] .toggle").click()
    record_page.wait_for_selector(".item.open .words")
    said = "the name “olive oil” in the title" in record_page.locator(".item.open .words").inner_text()
    assert said == (abs(found["match"]["value"]) >= 0.05)


def test_as_many_tags_as_are_likely_may_be_none(record_page: Any, record_service: Running) -> None:
    page = record_page
    assert page.locator("#empty").inner_text() == "Nothing to tag yet."
    page.select_option("#k", label="as many as are likely")
    fill(page, RECORD)
    likely = [one["tag"] for one in record_service.suggest([RECORD], k="auto", tail=0)[0]]
    assert 0 < len(likely) < 5
    settled(page, likely)
    assert page.locator("#empty").is_hidden()
    fill(page, {"title": "", "text": "zzz"})
    page.wait_for_selector("#empty:not([hidden])")
    assert page.locator("#empty").inner_text() == "No tag is likely."
    page.select_option("#k", "5")
    page.wait_for_selector(".item")
    fill(page, {"title": "", "text": " "})
    page.wait_for_selector("#empty:not([hidden])")
    assert page.locator("#empty").inner_text() == "Nothing to tag yet."


def test_a_record_works_by_keyboard_and_its_feedback_is_kept(
    record_page: Any, record_service: Running
) -> None:
    page = record_page
    page.keyboard.type(RECORD["title"])
    page.keyboard.press("Tab")
    page.keyboard.type(RECORD["text"])
    wanted = [one["tag"] for one in record_service.suggest([RECORD], k=10, tail=0)[0]]
    settled(page, wanted)
    for _ in range(3):  # the dial, the number of tags, the first suggestion
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_selector(".item:nth-child(1) .words")
    page.keyboard.press("a")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("r")
    page.click("#keep-button")
    page.wait_for_function("() => document.getElementById('marks').textContent.startsWith('Saved')")
    line = json.loads((record_service.log_path.parent / "feedback.jsonl").read_text().splitlines()[-1])
    assert {name: line[name] for name in RECORD} == RECORD
    assert (line["tags"], line["rejected"]) == (wanted[:1], wanted[1:2])


def test_the_label_tree_knows_the_record(record_page: Any) -> None:
    record_page.fill("#field-0", "olive oil")
    record_page.click("#tab-tree")
    record_page.wait_for_selector("#children .chance")
    assert "%" in record_page.locator("#children .chance").first.inner_text()
    assert "olive oil" in record_page.locator(".best li").first.inner_text()


def test_all_of_it_works_by_keyboard(page: Any, service: Running) -> None:
    page.keyboard.type("olive oil cod")  # the text has the focus
    settled(page, [one["tag"] for one in service.suggest(["olive oil cod"], k=10, tail=0)[0]])
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    page.wait_for_function("() => document.getElementById('tail-value').textContent === '0.05'")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_selector(".item:nth-child(2) .words")
    page.keyboard.press("a")
    assert page.locator(".item.accepted").get_attribute("data-tag") == tags(page)[1]
    page.locator("#tab-suggest").focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_selector("#children li")


def test_feedback_is_kept_when_asked_for(page: Any, service: Running) -> None:
    page.fill("#text", TEXT)
    page.locator(".item[data-tag='1264'] .mark[title=Accept]").click()
    page.locator(".item[data-tag='1085'] .mark[title=Reject]").click()
    assert page.locator("#marks").inner_text() == "1 accepted, 1 rejected"
    page.click("#keep-button")
    page.wait_for_function("() => document.getElementById('marks').textContent.startsWith('Saved')")
    line = json.loads((service.log_path.parent / "feedback.jsonl").read_text().splitlines()[-1])
    assert (line["text"], line["tags"], line["rejected"]) == (TEXT, ["1264"], ["1085"])


def test_any_tag_can_be_asked_about(page: Any) -> None:
    page.select_option("#k", "5")
    page.fill("#text", "cod")
    page.wait_for_selector(".item")
    page.fill("#ask", "whe")
    page.locator("#found button").click()
    page.wait_for_selector(".item.open[data-tag='2002'] .words")


def test_a_tag_that_is_not_there_is_said_so(page: Any) -> None:
    page.fill("#ask", "zucchini")
    page.wait_for_selector("#no-tag:not([hidden])")
    assert page.locator("#no-tag").inner_text() == "No tag matches “zucchini”."
    page.fill("#ask", "")
    page.wait_for_selector("#no-tag", state="hidden")


def test_keys_are_named_where_they_work(page: Any) -> None:
    assert page.locator("#keys").is_visible()
    page.click("#tab-tree")
    page.wait_for_selector("#keys", state="hidden")
    page.click("#tab-suggest")
    page.wait_for_selector("#keys")


def test_the_label_tree_can_be_walked_to_a_tag_and_back(page: Any) -> None:
    page.fill("#text", TEXT)
    page.click("#tab-tree")
    page.wait_for_selector("#children li")
    assert page.locator("#which-tree option").count() == 2
    assert "%" in page.locator("#children .chance").first.inner_text()
    for _ in range(6):
        if not page.locator("#children li").count():
            break
        here = page.locator("#path").inner_text()
        page.locator("#children .toggle").first.click()
        page.wait_for_function("here => document.getElementById('path').innerText !== here", arg=here)
    assert page.locator("#node h2").inner_text().startswith("The tag ")
    page.locator("#path button").first.click()
    page.wait_for_function("() => document.getElementById('path').innerText === 'root'")


def test_names_are_never_read_as_html(browser: Any, tmp_path: Any) -> None:
    tagger = make_tagger()
    tagger.names = {"1264": "<img src=x onerror=alert(1)>"}
    tagger.save(tmp_path / "tagger.ll")
    with serving(tmp_path / "tagger.ll") as running:
        for page in opened(browser, running):
            page.fill("#text", "olive")
            page.wait_for_selector(".item")
            assert "<img src=x" in page.locator(".item .name").first.inner_text()
            assert page.locator(".mark").count() == 0, "no feedback without a file"


def test_a_model_of_vectors_says_so_and_asks_for_the_key(browser: Any, tmp_path: Any) -> None:
    make_vector_model().save(tmp_path / "model.ll")
    with serving(tmp_path / "model.ll", "--api-key", "sesame") as running:
        context = browser.new_context()
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        page.goto(running.url)
        page.wait_for_selector("#key-form:not([hidden])")
        page.fill("#key", "sesame")
        page.click("#key-form button")
        page.wait_for_selector("#children li")
        assert page.locator("#text").is_disabled()
        context.close()


@pytest.mark.parametrize(
    "options",
    [
        {"color_scheme": "dark"},
        {"viewport": {"width": 360, "height": 740}, "is_mobile": True, "has_touch": True},
    ],
    ids=["dark", "phone"],
)
def test_it_is_readable_in_the_dark_and_on_a_phone(browser: Any, service: Running, options: Any) -> None:
    for page in opened(browser, service, **options):
        page.fill("#text", TEXT)
        page.locator(".item .toggle").first.click()
        page.wait_for_selector(".words")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "nothing sticks out"
        for selector in ("body", ".name", ".more", ".bin", "#tail-help", "#text"):
            assert contrast(page, selector) >= 4.5, selector
        if "viewport" in options:
            assert page.locator(".mark").first.bounding_box()["width"] >= 40, "wide enough for a finger"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1120])
def test_fields_are_readable_in_light_and_dark_on_any_screen(
    browser: Any, record_service: Running, scheme: str, width: int
) -> None:
    for page in opened(
        browser, record_service, color_scheme=scheme, viewport={"width": width, "height": 740}
    ):
        page.select_option("#k", "auto")
        fill(page, RECORD)
        page.locator(".item .toggle").first.click()
        page.wait_for_selector("#fields mark")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "nothing sticks out"
        for selector in ("label[for=field-0]", "#field-0", "#k", ".words p"):
            assert contrast(page, selector) >= 4.5, selector
        edges = [page.locator(one).bounding_box() for one in ("#field-0", "#text")]
        assert edges[0]["x"] == edges[1]["x"]
        assert edges[0]["width"] == edges[1]["width"]


def contrast(page: Any, selector: str) -> float:
    """Give the contrast ratio of an element's text as WCAG 2 defines it."""
    colours = page.evaluate(
        """selector => {
          let element = document.querySelector(selector);
          const ink = getComputedStyle(element).color;
          if (element.matches("textarea")) element = element.parentElement.querySelector(".backdrop");
          const clear = e => getComputedStyle(e).backgroundColor === "rgba(0, 0, 0, 0)";
          while (clear(element)) element = element.parentElement;
          const ground = getComputedStyle(element).backgroundColor;
          return [ink, ground].map(c => c.match(/[\\d.]+/g).slice(0, 3).map(Number));
        }""",
        selector,
    )
    light, dark = sorted((luminance(colour) for colour in colours), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(colour: list[float]) -> float:
    parts = [c / 255 / 12.92 if c / 255 <= 0.03928 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in colour]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def test_the_meaning_of_a_text_is_one_line(
    browser: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    helper.require_extra()
    monkeypatch.setenv("LONGLEAF_CACHE", str(tmp_path / "cache"))
    words = sorted({word for text in WORDS.values() for word in text.split()})
    bert = helper.save_bert(tmp_path / "bert", words=[*helper.WORDS, *words])
    make_tagger(encoder=str(bert), encoder_weight=2.0).save(tmp_path / "tagger.ll")
    with serving(tmp_path / "tagger.ll") as running:
        found = running.call("/v1/explain", {"text": TEXT, "tag": "1264"}).json["meaning"]
        for page in opened(browser, running):
            page.fill("#text", TEXT)
            page.locator(".item[data-tag='1264'] .toggle").click()
            line = page.locator(".item.open .words .meaning")
            assert line.inner_text() == f"meaning: {found:+.1f}".replace("-", "−")


def test_a_model_without_encoder_has_no_such_line(page: Any) -> None:
    page.fill("#text", TEXT)
    page.locator(".item[data-tag='1264'] .toggle").click()
    page.wait_for_selector(".item.open .words")
    assert page.locator(".meaning").count() == 0
