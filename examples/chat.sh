#!/usr/bin/env bash
# One chat completion with curl. SWITCHYARD_KEY is the key that the first start printed.
set -euo pipefail
curl --fail-with-body --silent --show-error "${SWITCHYARD_URL:-http://127.0.0.1:8787}/v1/chat/completions" \
  -H "Authorization: Bearer ${SWITCHYARD_KEY:?the key that the first start printed}" \
  -H "Content-Type: application/json" \
  -d "{\"model\": \"${MODEL:-sandbox/chat:free}\", \"messages\": [{\"role\": \"user\", \"content\": \"Hello\"}]}"
echo
