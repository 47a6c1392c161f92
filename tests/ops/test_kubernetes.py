"""The manifests of ops/kubernetes against Kubernetes' own schemas, and against what the roles really are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from ops.config import StackConfig
from ops.role import NOTIFIER, ROLES
from services.processors.notifications.document import read_document
from services.processors.notifications.settings import read_notifier_settings

HOME = Path(__file__).parents[2] / "ops" / "kubernetes"
VERSIONS = ("1.28", "1.34")
Manifest = dict[str, Any]


def manifests() -> list[Manifest]:
    files = sorted(HOME.glob("*.yaml"))
    return [
        found
        for file in files
        if file.name != "kustomization.yaml"
        for found in yaml.safe_load_all(file.read_text(encoding="utf-8"))
    ]


def named(kind: str, name: str) -> Manifest:
    return next(one for one in manifests() if (one["kind"], one["metadata"]["name"]) == (kind, name))


def pod_of(role: str) -> Manifest:
    kind = "StatefulSet" if role in ("decider", NOTIFIER.name) else "Deployment"
    pod: Manifest = named(kind, role)["spec"]["template"]
    return pod


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("manifest", manifests(), ids=lambda one: f"{one['kind']}-{one['metadata']['name']}")
def test_manifest_is_what_kubernetes_takes(manifest: Manifest, version: str) -> None:
    kubernetes_validate.validate(manifest, version, strict=True)


def test_schema_finds_a_mistake() -> None:
    broken = named("Deployment", "gateway")
    broken["spec"]["template"]["spec"]["containers"][0]["livenessProb"] = {}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(broken, VERSIONS[-1], strict=True)


def test_kustomization_names_every_manifest_but_the_example() -> None:
    listed = yaml.safe_load((HOME / "kustomization.yaml").read_text(encoding="utf-8"))["resources"]
    there = {file.name for file in HOME.glob("*.yaml")} - {"kustomization.yaml", "secret.example.yaml"}
    assert set(listed) == there
    assert all(one["metadata"].get("namespace", "placet") == "placet" for one in manifests())


def test_page_applies_what_the_kustomization_leaves_out_and_deletes_the_job_that_cannot_be_changed() -> None:
    page = (HOME.parents[1] / "docs" / "operations.md").read_text(encoding="utf-8")
    said = [line.split() for line in page.splitlines() if line.startswith("    kubectl ")]
    namespace, secret, job, rest = said
    assert namespace[1:] == ["apply", "-f", "ops/kubernetes/namespace.yaml"]
    assert secret[1:] == ["apply", "-f", "secret.yaml"]
    assert job[1:] == ["delete", "job", "install", "--namespace", "placet", "--ignore-not-found"]
    assert rest[1:] == ["apply", "-k", "ops/kubernetes"]
    jobs = [found for found in manifests() if found["kind"] == "Job"]
    assert [found["metadata"]["name"] for found in jobs] == ["install"]
    assert jobs[0]["spec"]["ttlSecondsAfterFinished"] > 0


def test_every_secret_that_a_pod_waits_for_is_the_examples() -> None:
    asked = {
        volume["secret"]["secretName"]
        for found in manifests()
        if found["kind"] in ("Deployment", "StatefulSet", "Job")
        for volume in found["spec"]["template"]["spec"]["volumes"]
        if "secret" in volume
    }
    there = yaml.safe_load((HOME / "secret.example.yaml").read_text(encoding="utf-8"))
    assert asked == {there["metadata"]["name"]}


@pytest.mark.parametrize("role", sorted(ROLES))
def test_role_is_probed_where_its_probe_listens(role: str) -> None:
    config = StackConfig(**json.loads(named("Secret", "placet")["stringData"]["placet.json"]))
    (container,) = pod_of(role)["spec"]["containers"]
    port = config.gateway_port if role == "gateway" else config.probe_port_of(role)
    ports = {found["name"]: found["containerPort"] for found in container["ports"]}
    assert container["args"][0] == role
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert ports[container[probe]["httpGet"]["port"]] == port
    assert container["livenessProbe"]["httpGet"]["path"] == "/healthz"
    assert container["readinessProbe"]["httpGet"]["path"].startswith("/readyz")
    assert pod_of(role)["metadata"]["annotations"]["prometheus.io/port"] == str(port)


@pytest.mark.parametrize("role", [*sorted(ROLES), "install"])
def test_pod_runs_without_privileges_and_says_what_it_needs(role: str) -> None:
    pod = named("Job", role)["spec"]["template"] if role == "install" else pod_of(role)
    (container,) = pod["spec"]["containers"]
    assert pod["spec"]["securityContext"]["runAsNonRoot"]
    assert not pod["spec"]["automountServiceAccountToken"]
    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert {"requests", "limits"} == set(container["resources"])


def test_notifier_has_a_disk_of_its_own_and_a_file_that_it_takes(tmp_path: Path) -> None:
    secret = named("Secret", "placet")["stringData"]
    config = StackConfig(**json.loads(secret["placet.json"]))
    assert Path(config.notifications_file).parent == Path("/etc/placet")
    file = tmp_path / Path(config.notifications_file).name
    file.write_text(secret[file.name], encoding="utf-8")
    document = read_document(file)
    for target in (one.webhook for found in document.notifications for one in found.to):
        assert target is not None
        assert target.secret_file in secret
    workload = named("StatefulSet", NOTIFIER.name)["spec"]
    assert workload["replicas"] == 1
    (claim,) = workload["volumeClaimTemplates"]
    (container,) = workload["template"]["spec"]["containers"]
    mounts = {found["name"]: found["mountPath"] for found in container["volumeMounts"]}
    settings = config.settings_for("notifier-0", NOTIFIER.name)
    outbox = read_notifier_settings({**settings, "log_signatures": "off"}).outbox
    assert Path(mounts[claim["metadata"]["name"]]) == outbox.parent
