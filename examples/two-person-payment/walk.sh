#!/usr/bin/env bash
# A payment that two people must approve: proposed, decided by both, run once, proved, and verified offline.
#
#   bash examples/two-person-payment/walk.sh [DIRECTORY]      everything it makes is in DIRECTORY (default: a new one)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
dir=${1:-$(mktemp -d)}
mkdir -p "$dir"
cd "$dir"

say() { printf '\n%s\n' "── $*"; }
as() { PLACET_TOKEN=$(cat "$1.token") "${@:2}"; }
token() { placet token issue --data-dir stack --subject "$1" "${@:2}" > "$1.token"; }
field() { python3 -c 'import json, sys; print(eval("value" + sys.argv[1], {"value": json.load(sys.stdin)}))' "$1"; }

say "a stack of its own"
trap 'placet down --data-dir stack > /dev/null' EXIT
export PLACET_URL
PLACET_URL=$(placet up --data-dir stack --port 0 --detach --json | field '["url"]')
cp stack/admin.token admin.token

say "people: two treasurers, one of them with two accounts; an analyst; and the agent"
as admin placet principals publish mia --subject mia@idp --subject mia@old --role reviewer --role treasurer
as admin placet principals publish tom --subject tom@idp --role reviewer --role treasurer
as admin placet policy publish "$here/policy.yaml"
token mia@idp --role reviewer; token mia@old --role reviewer; token tom@idp --role reviewer
token ana --role analyst; token billing-bot --role agent --agent billing-bot

say "the agent proposes, and waits"
as billing-bot python3 "$here/pay.py" > paid.txt &
agent=$!
hold=
for _ in $(seq 60); do
  hold=$(as mia@idp placet inbox --json | field '[0]["hold_id"]' 2> /dev/null) && break || sleep 0.5
done

say "mia reads exactly what would run, and approves; her other account is not a second person"
as mia@idp placet approve "$hold" --yes
as mia@old placet approve "$hold" --yes || true

say "tom approves: two people, so it runs"
as tom@idp placet approve "$hold" --yes
wait "$agent"
cat paid.txt

say "who decided what, and everything that ran because of tom"
as ana placet audit
as ana placet audit impact --reviewer tom

say "the proof of the decision, verified without the server; and the whole trail"
decision=$(as ana placet audit --subject tom@idp --json | field '[0]["event_id"]')
as ana placet audit prove "$decision" --out proof.json
as ana placet audit fetch --out trail
cp stack/keys/audit.json keys.json   # the public half, which an auditor would have received before
placet down --data-dir stack > /dev/null
placet audit verify proof.json --key keys.json
placet audit verify trail --key keys.json

say "and what a forger would be told"
python3 - <<'PY'
import base64, json

proof = json.load(open("proof.json"))
value = base64.b64decode(proof["record"]["value"])
proof["record"]["value"] = base64.b64encode(value[:-1] + bytes([value[-1] ^ 1])).decode()
json.dump(proof, open("forged.json", "w"))
PY
if placet audit verify forged.json --key keys.json; then exit 1; fi
