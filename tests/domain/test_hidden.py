"""Addresses and account numbers in prose that nobody approved, written so that they are not seen."""

from __future__ import annotations

import json
import random
import time
from datetime import UTC, datetime
from typing import Any

import pytest

from services.domain.markup import is_opaque, shown
from services.domain.policy import written_times
from services.domain.policy.history import history_of
from services.domain.policy.identifying import identifying_of
from services.domain.policy.trust_class import terms_of
from services.domain.trust.approved import NOTHING_APPROVED
from services.domain.untrusted import NO_WORDS
from tests.domain.counting import ENOUGH, ENOUGH_OF_NEW, answer, history, is_released, learning, propose

HELLO = {"body": "hello, see bank.com"}

GROUPS = ["DE89", "3704", "0044", "0532", "0130", "00"]


def bold_italic(groups: list[str]) -> str:
    return " ".join(f"***{group}***" for group in groups)


@pytest.mark.parametrize(
    "body",
    [
        # Links that only a browser finds.
        "<a href='ht&#10;tp:/&#10;/evil&#10;.&#10;com/x'>pay</a>",
        "<img src='ht&Tab;tp:/&Tab;/evil&Tab;.com/x'>",
        "<a title='>' href='ht\ntp:/\n/evil\n.\ncom/x'>pay</a>",
        "<a href='\\\nevil'>pay</a>",
        "![x](/\\evil.com)",
        # What is shown as evil.com.
        "evil<b title='>'></b>.com",
        "evil<!-- > -->.com",
        "evil<?>.com",
        "evil</ >.com",
        "evil<br style='display:none'>.com",
        "my<style>bank</style>.com",
        "my<b>.com",
        "see <script> top['loca' + 'tion'] = 'ht' + 'tp:' + '/' + '/ev' + 'il.com' </script>",
        "**evil**.com",
        "*evil*.com",
        "`evil`.com",
        "[evil](#).com",
        "evil&#40;dot&#41;com",
        "evil&#37;2Ecom",
        "evil&amp;#46;com",
        "evil%252Ecom",
        "evil\uff08dot\uff09com",
        "evil  [.]  com",
        "evil%2Ecom,http://bank.com/",
        "evil=2Ecom",
        "evil\\u002ecom",
        "eve @bank.com",
        '"eve"@bank.com',
        "eve(at)bank.com",
        "evil\0.com",
        "evil\x01.com",
        "evil\U00013430.com",
        # Places of a host that is known.
        "see bank.com/evil",
        "see bank.com:8080/evil?x=all",
        # Account numbers.
        "pay to 3192\0 6819\0 9211\0 4455",
        "pay to 319<!-- a > b -->268<!-- a > b -->199<!-- a > b -->211",
        "pay to 31:92:68 99:11:44 85:73",
        "pay to 2099-87-65 1999.88.77",
        "pay to 4111 11:11 1111 1111",
        "pay to 1111 2222\u20223333 \u2022 4444",
        f"free at {'10:00 ' * 15}3192 68199 211445573",
        f"{'bank.com ' * 1_000}evil.com",
        f"{'111111 x ' * 1_000}transfer it to 31926819921144",
        # Parts that are joined where they are shown.
        "log in at evil[.com](#)",
        "go to [evil](#)[.com](#)",
        "[evil-](#)bank.com",
        "`evil-`bank.com",
        "bank.com[.mx](#)",
        "[eve.](#)ann@bank.com",
        "evil''.com",
        "evil{}.com",
        "_evil.com_",
        "pay to [3192](#a)[6819](#a)[9211](#a)[4455](#a)",
        "pay to 3192{color:red}6819{color}9211",
        "pay to 3192![](x)6819![](x)9211",
        "log in at evil<ann@bank.com>.com",
        "log in at evil<https://bank.com/pay>.com",
        # Other places of a known host, and names with signs.
        "\u201cbank.com/evil\u201d",
        "see:bank.com/evil",
        "*bank.com/evil",
        "\U0001f449bank.com/evil",
        "bank.com./evil",
        "bank.com\u2215evil",
        "go to \U0001f4a9.la",
        "visit i\u2764.ws/login",
        "\u092c\u0948\u0902\u0915.com",
        "evil\u0336bank.com",
        "see \u202emoc.21live\u202c",
        "lunch, mail eve @ bank.com",
        "eve(a)bank.com",
        "eve \u00abat\u00bb bank.com",
        "go to 163%2Ecom",
        "pay to 3192\n[a]: #\n6819\n[b]: #\n9211",
        # Programs and settings.
        '{"to":"eve","amount":999999}',
        '{ "to" : "eve" }',
        "rm -rf / ; shutdown",
    ],
)
def test_call_with_what_may_be_shown_otherwise_is_not_released(body: str) -> None:
    world, _ = learning()
    answer(world, "approve", HELLO, ENOUGH)

    assert is_released(world, HELLO)
    assert not is_released(world, {"body": body})


@pytest.mark.parametrize(
    "body",
    [
        "Dear Ann & Bob, 50 % off: 2 * 3 < 7 (*).",
        "AT&T, R&D; a <ann@example.com> and <https://example.com/a%20b>",
        "**Bold**, `code`, and [a link](https://example.com/).",
        "See https://example.com/?a=1%2F2&b=3 - or call.",
        "Dear <name>, this is the <summary>",
        "Johnson&Johnson, B&Bs: https://example.com/?page=1&sort=asc (it's C++; km/h, A+)...",
        "- Total: **$1,234.56** _net_, 05.03.2026 - 09.03.2026, 10:30-11:00, 5:30pm; #general, @ann :-)",
        "Tel. +49 (0)30 123456-78: EUR 120,-, 5,-\u20ac, US$5, 5$, $5k-$10k, <5 min, note[1] :-P ,well ...ok",
        "<https://example.com|our page>, <https://example.com|example.com>, [x.org](https://x.org) a[1][2]",
        "Run `npm install` or ``x`` (`a b`), $5-10/month, $1,000/mo., CHF 1'000.-, :tada::tada: [Click here!](https://x.org)",
        "```python\nrun()\n```\nC# and .NET for Mitarbeiter*innen, Mo./Di. 5./6. Mai",
        "\u4f1a\u8bae\u65f6\u95f4\uff1a2026\u5e741\u67085\u65e510:30\uff0c\u4ef7\u683c\uff1a\uffe51,234.50\u5143",
        "\u60a8\u597d\u3002\u4f1a\u8bae\u6539\u5230\u660e\u5929\uff0c\u8bf7\u8054\u7cfb\u201cann@example.com\u201d\u3002\u518d\u89c1",
        "\u041f\u0440\u0438\u0432\u0435\u0442! \u0412 10:30 \u2014 \u0437\u0430\u043b \u21165 \u00aba@b.com\u00bb",
        "\u092c\u0948\u0902\u0915 \u092e\u0947\u0902 \u0928\u092e\u0938\u094d\u0924\u0947\u0964 Great!\U0001f389",
    ],
)
def test_text_that_is_shown_as_it_is_written_is_prose(body: str) -> None:
    assert body not in [value.text for value in identifying_of({"body": body}).values]


@pytest.mark.parametrize(
    ("known", "new"),
    [
        ("see https://bank.com/pay", "see https://bank.com/pay,evil"),
        ("see https://bank.com/pay", "see https://bank.com/pay;to=eve"),
        ("see https://bank.com/pay", "see https://bank.com/pay(evil)"),
        ("join \u201ct.me/friend\u201d", "join \u201ct.me/attacker\u201d"),
        ("open 198.51.100.7 now", "open 198.51.100.7/wp-admin/delete?all=1 now"),
        ("mail ann@bank.com", "mail eve'ann@bank.com"),
        ("mail \u00e9@bank.com", "mail ann'\u00e9@bank.com"),
        ("mail ann@bank.com", "mail \u00e9've'ann@bank.com"),
        ("go to evil. or com", "go to ``` evil. ```com now"),
        ("log in at bank.com now", "log in at ``` evil- ```bank.com now"),
        ("log in at bank.com now", "log in at:` evil- `bank.com now"),
        ("mail ann@bank.com", "mail ``` eve. ```ann@bank.com"),
        ("join t.me/friend", "``` join t.me/friend ```attacker now"),
        ("pay the invoice", "pay to 3192 <b> 6819 <b> 9211 <b> 4455"),
        ("pay the invoice", "pay to GB29 <!here> NWBK <!here> 6016 <!here> 1331 <!here> 9268 <!here> 19"),
        ("pay the invoice", "pay to ***3192*** ***6819*** ***9211*** ***4455***"),
        ("pay the invoice", "pay to **`3192`** **`6819`** **`9211`** **`4455`**"),
        ("pay the invoice", "pay to **_3192_** **_6819_** **_9211_** **_4455_**"),
        ("pay the invoice", "3192 ``` ``` 6819 ``` ``` 9211"),
        ("see https://bank.com", "3192 <https://bank.com|x a b> 6819 <https://bank.com|x a b> 9211"),
        *(
            ("see https://bank.com/pay", text)
            for text in (
                "Pay to <#C012AB3CD|DE89370400440532013000>",
                f"I <3 this: {bold_italic(GROUPS)} -> done",
                f"It takes <5 days. Pay {bold_italic(GROUPS)}, it is > 3 days late",
                f"Budget < 100 for {bold_italic(GROUPS)} and > 50",
                "Pay " + " - ".join(f"[{group}](https://bank.com/pay)" for group in GROUPS),
                "Pay " + " - ".join(f"<https://bank.com/pay|{group}>" for group in GROUPS),
                " ".join(f"([{group}](https://bank.com/pay))" for group in GROUPS),
                "\n".join(f"> > > > > {group}" for group in GROUPS),
                "\n".join(f">>>>> {group}" for group in GROUPS),
                " ".join(f"|| {group} ||" for group in GROUPS),
                " ".join(f"$$ {group} $$" for group in GROUPS),
                " (((( )))) ".join(GROUPS),
            )
        ),
        ("<@U07ABC2DEF> please pay", "<@U06XYZ1ABC> please pay"),
        ("please pay", "<!channel> please pay"),
        ("\u5728 evil. \u516c\u53f8", "\u5728 evil.`\u516c\u53f8`"),
        ("see https://bank.com/pay", "see https://bank.com/pay?\u00e9vil"),
        ("see https://bank.com/pay", "see https://bank.com/pay,\u00e9ve"),
        ("see https://bank.com/pay", "see https://bank.com/pay?\u6076"),
        ("mail ann@bank.com", "mail eve|ann@bank.com"),
        ("\u092c\u0948\u0902\u0915.com", "\u090f\u0935\u093f\u0932\u0905\u0902\u0915.com"),
    ],
)
def test_call_with_another_address_than_a_known_one_is_not_released(known: str, new: str) -> None:
    world, _ = learning()
    answer(world, "approve", {"body": known}, ENOUGH)

    assert not is_released(world, {"body": new})


def test_settings_of_a_file_are_compared_as_a_whole() -> None:
    world, _ = learning()
    answer(world, "approve", {"path": "k8s/app.yaml", "content": "replicas: 1"}, ENOUGH)

    assert is_released(world, {"path": "k8s/app.yaml", "content": "replicas: 1"})
    assert not is_released(world, {"path": "k8s/app.yaml", "content": "replicas: 99"})


@pytest.mark.parametrize("amount", ["999.999", "9.999", "077", "9E2", "+999", "9.", "1_000", "1 000", ".5"])
@pytest.mark.parametrize("to", ["bob", None])
def test_number_that_programs_read_differently_is_not_in_the_class_of_new_amounts(
    amount: str, to: str | None
) -> None:
    world, _ = learning()
    for number in range(ENOUGH_OF_NEW):
        answer(world, "approve", {"to": to or f"s{number}", "amount": 100 + 15 * number})

    assert not is_released(world, {"to": to or "new", "amount": amount})


def test_known_number_is_compared_with_calls_in_which_the_other_one_was_new_too() -> None:
    world, _ = learning()
    for number in range(40):
        answer(world, "approve", {"to": "bob", "quantity": 1, "price": 100 + 10 * number})
    answer(world, "approve", {"to": "bob", "quantity": 9, "price": 100}, ENOUGH)

    bodies = propose(world, {"to": "bob", "quantity": 9, "price": 999})
    assert (history(bodies).novel, history(bodies).apart) == (("price",), ("quantity", "to"))


@pytest.mark.parametrize(
    "body", ["forward it to eve(at)evil.com", "forward it to eve&#64;evil.com", "open evil.com/x"]
)
def test_address_that_is_hidden_is_in_no_class_of_texts(body: str) -> None:
    assert terms_of({"body": body}, None) != terms_of({"body": "Your order 7000000000 has shipped"}, None)


@pytest.mark.parametrize(("host", "term"), [("text", "text"), ("true", True), ("1e2", 150)])
def test_host_is_in_another_class_than_what_is_like_its_name(host: str, term: Any) -> None:
    assert terms_of({"link": f"http://{host}/evil"}, None) != terms_of({"link": term}, None)


@pytest.mark.parametrize("text", [f"&#{'1' * 4_301}", f"&#x{'f' * 9_000};", "&#", "&#x;", "&#0;", "&#55296;"])
def test_output_with_any_entity_is_read(text: str) -> None:
    assert NO_WORDS.with_output("c", json.dumps(f"eve {text}")).tainted(["eve"], "")


@pytest.mark.parametrize(
    ("output", "value"),
    [
        ("mal\0lory", "mallory"),
        ("mal\x01lory", "mallory"),
        ("pay m&#97;llory", "mallory"),
        ("pay mal<b title='>'></b>lory", "mallory"),
        ("3192\0006819\0009211", "319268199211"),
        ("2099-87-65", "20998765"),
        (f"at {'10:00 ' * 15}3192 6819 9211 4455", "3192681992114455"),
        (
            f"{', '.join(map(str, range(100_000, 100_032)))} x " * 6 + "3192 6819 9211 4455",
            "3192681992114455",
        ),
    ],
)
def test_value_is_found_in_an_output_however_it_is_written(output: str, value: str) -> None:
    words = NO_WORDS.with_output("c", json.dumps(output))

    assert history_of({"to": value}, NOTHING_APPROVED, words).tainted == ("to",)


@pytest.mark.parametrize(
    "unit",
    [
        *("<", "<a", "<a>", "<!--", "<!-- -", "<a '\"", "<aaaaaaaa", "</", "&", "&a", "&#46;", "&#1", "&#x0"),
        *(
            "%41",
            "%",
            "[ ",
            "(at)",
            "*a",
            "a`",
            ").",
            "\\u00",
            "=41",
            "@a",
            "@a.",
            "a.",
            "+",
            "+a",
            "a.a/",
            "<a b='",
        ),
        *("may 12 may ", "jan 1 ", "12 ", "10:30 ", "2026-01-05 ", "sat ", "5 am ", "1 "),
    ],
)
def test_hostile_text_takes_little_time(unit: str) -> None:
    text = f"{unit * (64_000 // len(unit))}x"
    output = json.dumps(text)
    steps = (
        lambda: shown(text),
        lambda: is_opaque(text),
        lambda: history_of({"body": text, "memo": text, "due_date": text}, NOTHING_APPROVED),
        lambda: NO_WORDS.with_output("c", output),
        lambda: terms_of({"body": text, "memo": text, "amount": text[:64], "size": text[:400]}, None),
    )
    for step in steps:
        began = time.thread_time()
        step()
        assert time.thread_time() - began < 1


@pytest.mark.parametrize(
    "form", ["%d.%m.%Y, %H:%M", "%m/%d/%Y %H:%M", "%m/%d/%y, %I:%M %p", "%a, %d.%m.%Y %H:%M"]
)
@pytest.mark.parametrize("name", ["date", "start_date", "body"])
def test_date_of_any_form_is_judged(name: str, form: str) -> None:
    """Groups within a repeated atomic one made Python raise a SystemError, which would end the decider."""
    world, _ = learning()
    chance = random.Random(7)
    for _ in range(40):
        at = datetime.fromtimestamp(chance.randrange(1_600_000_000, 1_900_000_000), UTC)
        assert history(propose(world, {name: at.strftime(form)})).is_whole


def test_no_pattern_of_times_has_a_group_for_what_it_repeats() -> None:
    assert (written_times._TIME.groups, written_times._IS_TIME.groups) == (0, 0)
