"""The proof text has one spelling, and fits one place of one batch."""

from __future__ import annotations

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from schemas.batch_signature import CONTEXT, parse_proof, sign_batch
from schemas.merkle import leaf_hash, root_and_paths

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
PATH = "A" * 43
LEAVES = st.integers(1, 70).map(lambda size: [leaf_hash(b"%d" % at) for at in range(size)])


@given(LEAVES, st.sampled_from(["gw", "gateway.2026.a", "."]))
def test_parse_of_a_signed_batch_verifies_each_leaf(leaves: list[bytes], kid: str) -> None:
    root, _ = root_and_paths(leaves)
    for index, (leaf, text) in enumerate(zip(leaves, sign_batch(kid, KEY, leaves), strict=True)):
        proof = parse_proof(text)
        signed = proof.signed_bytes(leaf)
        assert (proof.kid, proof.size, proof.leaf_index) == (kid, len(leaves), index)
        assert signed == CONTEXT + len(leaves).to_bytes(4, "big") + root
        KEY.public_key().verify(proof.signature, signed)


def test_sign_of_no_leaves_is_no_proofs() -> None:
    assert sign_batch("gw", KEY, []) == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "gw.1.0",
        "1.0..",
        "gw.one.0..",
        "gw.-1.0..",
        "gw.1_0.0..",
        "gw. 1.0..",
        "gw.9999999999.0..",
        "gw." + "9" * 5000 + ".0..",
        f"gw.2.0.{PATH[:-1]}.",
        f"gw.2.0.{PATH}=.",
        f"gw.2.0.{PATH[:-1]}B.",
        f"gw.2.0.{'+' * 43}.",
        f"gw.2.0.{PATH[:20]} {PATH[21:]}.",
        f"gw.2.0.{PATH}\n.",
        "gw.2.0.A.",
        "gw.٢.0..",
        "gw.1.0..é",
    ],
)
def test_parse_of_another_form_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - of decoding, of unpacking and of our own
        parse_proof(text.encode())


@given(st.binary(max_size=100))
def test_parse_of_any_bytes_is_a_proof_or_a_value_error(text: bytes) -> None:
    try:
        proof = parse_proof(text)
    except ValueError:
        return
    assert proof.signed_bytes(leaf_hash(b"")) is None or proof.size == 1


@pytest.mark.parametrize("size", [0, 2, 10**9 - 1])
def test_signed_bytes_of_a_path_that_fits_no_tree_are_none(size: int) -> None:
    assert parse_proof(f"gw.{size}.0..".encode()).signed_bytes(leaf_hash(b"")) is None
