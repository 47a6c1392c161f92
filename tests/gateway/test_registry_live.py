"""The schema registry's paths, as Confluent's clients use them."""

from __future__ import annotations

import pytest

from tests.gateway.conftest import Caller

pytestmark = [pytest.mark.stack, pytest.mark.broker]

REGISTRY = "application/vnd.schemaregistry.v1+json"


def test_registry_answers_as_confluents_does(bot: Caller) -> None:
    subject = "placet.events.ToolCallProposed"
    assert subject in bot.get("/subjects").json()
    newest = bot.get(f"/subjects/{subject}/versions/latest").json()
    assert newest["subject"] == subject
    assert bot.get(f"/schemas/ids/{newest['id']}").json() == {"schema": newest["schema"]}
    assert bot.get(f"/subjects/{subject}/versions").json() == list(range(1, newest["version"] + 1))
    assert bot.get("/subjects/none/versions").json()["error_code"] == 40401
    for unknown in ("99999", "9" * 5000):
        for part in ("", "/schema", "/versions"):
            assert bot.get(f"/schemas/ids/{unknown}{part}").json()["error_code"] == 40403
    alone = bot.get(f"/schemas/ids/{newest['id']}/schema")
    assert (alone.text, alone.headers["content-type"]) == (newest["schema"], REGISTRY)
    assert bot.get(f"/subjects/{subject}/versions/latest/schema").text == newest["schema"]
    assert bot.get(f"/subjects/{subject}/versions/999/schema").json()["error_code"] == 40402
    versions = [{"subject": subject, "version": newest["version"]}]
    assert bot.get(f"/schemas/ids/{newest['id']}/versions").json() == versions


@pytest.mark.parametrize("path", ["/subjects/a/b/c/d", "/schemas/nothing", "/config/a/b", "/mode/a/b"])
def test_registry_has_its_own_form_of_errors_for_what_it_does_not_have(bot: Caller, path: str) -> None:
    missing, refused = bot.get(path), bot.call("DELETE", "/subjects/a")
    assert (missing.status_code, missing.headers["content-type"]) == (404, REGISTRY)
    assert missing.json() == {"error_code": 404, "message": "HTTP 404 Not Found"}
    assert refused.json() == {"error_code": 405, "message": "HTTP 405 Method Not Allowed"}
    assert refused.headers["allow"] == "POST"
