import ipaddress
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.domain.policy.urls import UnreadableUrl, url_host


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://Example.COM/a?b#c", "example.com"),
        ("http://trusted.com.evil.com/", "trusted.com.evil.com"),
        ("http://trusted.com.", "trusted.com"),
        ("https://trusted.com:8443/x", "trusted.com"),
        ("https://trusted.com?@evil.com", "trusted.com"),
        ("https://trusted.com#@evil.com", "trusted.com"),
        ("ftp://files.example", "files.example"),
        ("http://127.0.0.1:80", "127.0.0.1"),
        ("http://[::1]:8080/", "::1"),
        ("http://[2001:DB8::0:1]", "2001:db8::1"),
        ("http://bücher.de", "xn--bcher-kva.de"),
        ("http://XN--bcher-kva.de", "xn--bcher-kva.de"),
        ("http://аррӏе.com", "xn--80ak6aa92e.com"),
        ("http://my_host/", "my_host"),
    ],
)
def test_url_host_plain_url_gives_the_exact_host(url: str, host: str) -> None:
    assert url_host(url) == host


@pytest.mark.parametrize(
    "url",
    [
        "http://trusted.com@evil.com",
        "http://trusted.com:pw@evil.com",
        "http://trusted.com\\@evil.com",
        "http://evil.com\\.trusted.com",
        "http://trusted.com%2eevil.com",
        "http://trusted.com%40evil.com",
        " http://trusted.com",
        "http://trusted.com ",
        "http://trus ted.com",
        "ht\ttp://trusted.com",
        "http://trusted.com\n.evil.com",
        "http://trusted\u200b.com",
        "http://trusted\u00ad.com",
        "http://ｔrusted.com",
        "http://trusted。com",
        "http://faß.de",
        "http://a\u202eb.com",
        "http:/trusted.com",
        "http:///trusted.com",
        "//trusted.com",
        "trusted.com",
        "javascript:alert(1)",
        "file:///etc/passwd",
        "http://",
        "",
        "http://trusted.com..",
        "http://.trusted.com",
        "http://-a.com",
        "http://a;b.com",
        "http://127.1",
        "http://0177.0.0.1",
        "http://0x7f.0.0.1",
        "http://0x7f000001",
        "http://2130706433",
        "http://①②7.0.0.1",
        "http://[::1",
        "http://[fe80::1%25eth0]/",
        "http://a:99999",
        "http://a:b",
        "http://xn--zz-/",
        "http://" + "a" * 300,
        "http://a.com/" + "x" * 3000,
    ],
)
def test_url_host_misleading_url_is_an_error(url: str) -> None:
    with pytest.raises(UnreadableUrl):
        url_host(url)


@pytest.mark.parametrize("value", [None, 5, ["http://a"]])
def test_url_host_no_text_is_an_error(value: Any) -> None:
    with pytest.raises(UnreadableUrl):
        url_host(value)


@given(st.text(alphabet=st.sampled_from("htp:/@.\\ac%1[]?#x0-\u200b\u3002"), max_size=30))
def test_url_host_answer_agrees_with_another_parser(text: str) -> None:
    url = "http://" + text
    try:
        host = url_host(url)
    except UnreadableUrl:
        return
    other = (urlsplit(url).hostname or "").rstrip(".")
    assert host == other or ipaddress.ip_address(host) == ipaddress.ip_address(other)
