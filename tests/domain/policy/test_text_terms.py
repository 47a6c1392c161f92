"""The terms of texts: what they name, how much they say, and which of them only equal texts share."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.domain.policy.quantities import amount_term
from services.domain.policy.trust_class import terms_of


def terms(value: Any, name: str = "amount") -> str | None:
    return terms_of({name: value}, None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Your order 7000000123 has shipped", "body=~code"),
        ("Your order 123456 has shipped, 3 of 12", "body=text"),
        ("See you on 2026-01-05 at 10:30", "body=text"),
        ("log in at evil.com", "body=evil.com"),
        ("Log in at EVIL.com, not at bank.com", "body=bank.com&body=evil.com"),
        ("see report-17.pdf", "body=report-17.pdf"),
        ("open 198.51.100.7 now", "body=198.51.100.7"),
        ("open 0xC0A8FEFE now", "body=//0xc0a8fefe"),
        ("Pay to GB29 NWBK 6016 1331 9268 19", "body=~iban"),
        ("Pay to GB29 NWBK 6016 1331 9268 18", "body=~code"),
        ("Write to eve\uff20evil.com", "body=@evil.com&body=evil.com"),
        ("Open t.me\uff0fattacker", "body=t.me"),
        ("Open \u201cevil.com/x\u201d", "body=evil.com"),
        ("Write to ann@example.com", "body=@example.com"),
        # Without letters it is no prose.
        ("$10", "body=~$1e1"),
        ("costs $10", "body=text"),
    ],
)
def test_prose_names_hosts_and_kinds_of_codes(text: str, expected: str) -> None:
    assert terms(text, "body") == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("menu.pdf", "~name"),
        ("C:/tmp/a.txt", "~name"),
        ("log in at evil.com", "~name"),
        ("GB29 NWBK 6016 1331 9268 19", "text"),
        # Its first characters have right check digits, too.
        ("UK12345678901234567890", "text"),
        ("DE04 8861 3682 9401 3967 89", "text"),
        ("Pay to GB29 NWBK 6016 1331 9268 19", "~code"),
        ("550e8400-e29b-41d4-a716-446655440000", "text"),
        ("ann", "text"),
        ("U012AB3CD", "~#1e1"),
        ("1AB2CD34", "~#1e1"),
        ("00:1a:2b:3c:4d:5e", "text"),
        ("user_42", "~#1e1"),
        ("report-17", "~#1e1"),
        ("/docs/17/x", "~#1e1"),
        ("2026-01-05", "text"),
        ("2026-01-05T10:30:00Z", "text"),
        ("10:30", "text"),
    ],
)
def test_other_text_says_of_what_kind_it_is(text: str, expected: str) -> None:
    assert terms(text, "x") == f"x={expected}"


@pytest.mark.parametrize(
    ("one", "same", "other"),
    [
        ("$11", "$99", "$999999"),
        ("$11", "$99", "-$11"),
        ("10 EUR", "99 EUR", "10 BTC"),
        ("10 EUR", "99 EUR", "100 EUR"),
        ("EUR10", "EUR99", "EUR100"),
        ("10\u20ac", "99\u20ac", "10$"),
        ("R100", "R999", "R1000"),
        ("3h", "9h", "9d"),
        ("3h", "9h", "9999h"),
        ("3h30m", "4h45m", "300h30m"),
        ("PT3H", "PT9H", "PT30H"),
        ("P1DT2H", "P2DT3H", "P10DT2H"),
        ("5%", "9%", "50%"),
        ("5 m\u00b2", "9 m\u00b2", "5 m\u00b3"),
        ("$1000000000", "$9999999999", "$99999999999"),
        ("1000000000EUR", "9999999999EUR", "99999999999EUR"),
        ("10 m", "99 m", "10 M"),
        ("10 US dollars", "99 US dollars", "1000 US dollars"),
        ("EUR 10 million", "EUR 99 million", "EUR 10 billion"),
        ("10 EUR/day", "99 EUR/day", "10 EUR/h"),
        ("10-20EUR", "30-40EUR", "30-400EUR"),
        ("2 apples, 3 pears", "9 apples, 5 pears", "900 apples, 3 pears"),
        ("10 EUR to ann@example.com", "90 EUR to bob@example.com", "900 EUR to ann@example.com"),
        (
            "10 EUR to GB29NWBK60161331926819",
            "11 EUR to GB29NWBK60161331926819",
            "100 EUR to GB29NWBK60161331926819",
        ),
        ("10 EUR to U012AB3CD", "11 EUR to U98X7Y6", "100 EUR to U012AB3CD"),
        # As ids are written.
        ("1hours30minutes", "9hours59minutes", "99hours59minutes"),
        ("1days12hours", "9days13hours", "99days12hours"),
        ("10EUR50", "99EUR99", "100EUR50"),
        ("x2", "x9", "x20"),
        ("usd_10", "usd_99", "usd_100"),
        ("Euros10", "Euros99", "Euros100"),
        ("usd1e2", "usd9e2", "usd1e9"),
        ("pay/10/eur/now", "pay/99/eur/now", "pay/100/eur/now"),
        ("25:11:11", "26:59:59", "250:11:11"),
        (
            "please pay Bob the sum of 10 EUR",
            "please pay Bob a sum of 99 EUR",
            "please pay Bob the sum of 100 EUR",
        ),
        # Beside an account, a wallet or an id.
        ("+49 171 1000000 10 EUR", "+49 171 2000000 99 EUR", "+49 171 1000000 100 EUR"),
        ("1000000 - 1000000 VND", "1000000 - 9000000 VND", "1000000 - 90000000 VND"),
        (
            "550e8400-e29b-41d4-a716-446655440000 1 share",
            "550e8400-e29b-41d4-a716-446655440099 9 share",
            "550e8400-e29b-41d4-a716-446655440000 10 share",
        ),
        (
            "0x52908400098527886E0F7030069857D2E4169EE7 1 ETH",
            "0x8617E340B3D01FA5F11F306F4090FD50E238070D 9 ETH",
            "0x52908400098527886E0F7030069857D2E4169EE7 10 ETH",
        ),
        ("31926819921144 12EUR", "31926819921155 19EUR", "31926819921144 999999EUR"),
        ("31926819921144/12EUR", "31926819921155/19EUR", "31926819921144/999999EUR"),
        ("/pay/ann/12.50", "/pay/bob/99.99", "/pay/bob/9999"),
        ("1e1usd", "9e1usd", "9e9usd"),
        ("/pay/ann/1.5e3", "/pay/bob/9.5e3", "/pay/bob/1.5e9"),
        ("/pay/ann/9", "/pay/bob/8", "/pay/bob/1e+9"),
        ("/pay/ann/0xA", "/pay/bob/0xF", "/pay/bob/0xFFFFFF"),
        (
            "please pay to Eve now the 9 euros",
            "please pay to Bob now the 8 euros",
            "please pay to Eve now the 9 000 euros",
        ),
        (
            "please pay to Eve now 1.5e3 euros",
            "please pay to Bob now 9.5e3 euros",
            "please pay to Eve now 1.5e9 euros",
        ),
        ("4917112399 10dollars", "4917112388 99dollars", "4917112399 9000000dollars"),
        ("4917112399 10EUR50", "4917112388 99EUR99", "4917112399 9000000EUR50"),
        ("5.EUR", "9.EUR", "9000000.EUR"),
        ("send 0xA wei", "send 0xF wei", "send 0xFFFFFFFF wei"),
        # With the check digits of an IBAN.
        ("RE24 payout to Eve 10 EUR", "RE24 payout to Eve 99 EUR", "RE70 payout to Eve 9000000 EUR"),
        (
            "pay ann GB29NWBK60161331926819 9",
            "pay ann GB29NWBK60161331926819 8",
            "pay ann GB29NWBK60161331926819 900070",
        ),
        # In digits of another script.
        ("\u0661\u0660 EUR", "99 EUR", "\u0661\u0660\u0660 EUR"),
        # Numbers that programs read differently, with a unit and without.
        ("$1,000", "$9,999", "$1,000,000"),
        ("5.000", "9.999", "9.999.999"),
        ("5.000", "9.999", "50.000"),
        ("1e6", "9e6", "1e9"),
        ("5.e10", "9.e10", "5.e99"),
        ("0x10", "0xff", "0xfff"),
        ("+50", "+99", "+500"),
        ("0,5", "0,9", "9,5"),
        ("\uff11\uff11 EUR", "11 EUR", "1111 EUR"),
    ],
)
def test_amount_has_its_power_of_ten_and_its_unit(one: str, same: str, other: str) -> None:
    assert terms(one) == terms(same) != terms(other)
    assert "~" in str(terms(one))


@pytest.mark.parametrize("name", ["start_date", "when", "due_days"])
@pytest.mark.parametrize("text", ["3 May 2026", "12 June 2026", "10 am", "next 3 may"])
def test_date_is_no_amount_where_one_is_expected(name: str, text: str) -> None:
    assert terms(text, name) == f"{name}=text"


def test_amount_in_the_smallest_unit_of_a_currency_is_one() -> None:
    assert terms("1000000000000000 wei") != terms("9000000000000000000000 wei")


def test_amount_is_no_date_where_one_is_expected() -> None:
    assert terms("3h", "duration") != terms("9999d", "duration")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT u.*, `v` FROM u, {v}",
        "src/**/*.py",
        "/docs/My%20File.pdf",
        "<p>Hello</p>",
        "2*3",
        "evil&#46;com",
    ],
)
@pytest.mark.parametrize("name", ["body", "query", "file"])
def test_text_that_may_be_shown_otherwise_is_alike_only_to_itself(text: str, name: str) -> None:
    found = terms(text, name)

    assert str(found).startswith(f"{name}=sha256:")
    assert found == terms(text, name)
    assert found not in (terms(f"{text}x", name), terms(f"{text} ", name), terms("text", name))


def _some(form: str, count: int) -> str:
    return " ".join(map(form.format, range(count)))


@pytest.mark.parametrize(
    ("arguments", "other"),
    [
        # More addresses, names or kinds of items than a class names.
        ({"text": _some("https://{}.com", 12)}, {"text": _some("https://{}.com", 13)}),
        ({"text": _some("a{}.pdf", 12)}, {"text": _some("a{}.pdf", 13)}),
        ({"to": [f"a@{n}.com" for n in range(12)]}, {"to": [f"a@{n}.com" for n in range(13)]}),
        # Too long to be looked at.
        ({"text": "x " * 40_000}, {"text": "x " * 40_001}),
    ],
)  # fmt: skip
def test_value_that_names_too_much_is_alike_only_to_itself(
    arguments: dict[str, Any], other: dict[str, Any]
) -> None:
    found = terms_of(arguments, None)

    assert found is not None
    assert found == terms_of(arguments, None) != terms_of(other, None)


def test_text_of_a_list_is_not_that_list() -> None:
    assert terms([True]) != terms("[true]")
    assert str(terms("<b>")).partition("=")[2] != str(terms(["<b>", None])).partition("=")[2]


def test_long_names_keep_128_bits() -> None:
    host = f"{'x' * 60}.{'y' * 60}.com"

    assert str(terms(f"https://{host}/")).rpartition("~")[2].isalnum()
    assert len(str(terms(f"https://{host}/")).rpartition("~")[2]) == 32
    assert len(str(terms_of({"n" * 90: 1}, None)).partition("=")[0].rpartition("~")[2]) == 32


@given(
    # With the 2 of a square more digits would be those of an account.
    st.integers(1, 10**8 - 1),
    st.integers(1, 10**8 - 1),
    st.sampled_from(("$", " EUR", "h", " m\u00b2", " \u20bf")),
)
def test_amounts_are_alike_only_in_their_power_of_ten(one: int, other: int, unit: str) -> None:
    is_same = len(str(one)) == len(str(other))

    assert (terms(f"{one}{unit}") == terms(f"{other}{unit}")) is is_same


@given(st.text(st.sampled_from("0123456789.,' -+eExhmEUR$%/_:\u0661\u2019"), max_size=70))
def test_term_of_any_amount_is_one_value(text: str) -> None:
    found = amount_term(text)

    assert found.startswith("~")
    assert not {"&", "=", " "}.intersection(found)
