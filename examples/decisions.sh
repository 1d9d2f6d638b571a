#!/bin/sh
# Three questions about a state, answered with probabilities; costs nothing.
curl --silent --show-error --fail "${SWITCHYARD_URL:-http://127.0.0.1:8787}/v1/decisions" \
  -H "Authorization: Bearer $SWITCHYARD_KEY" -H "Content-Type: application/json" \
  -d '{
    "model": "sandbox/decide:free",
    "state": {"subject": "Refund", "text": "The parcel never came and I want my money back"},
    "questions": {
      "refund": {"type": "noul", "instructions": "Does the customer want a refund?"},
      "team": {"type": "choice", "instructions": "Who answers?", "criteria": {"billing": "money and refunds", "shipping": "parcels"}},
      "anger": {"type": "score", "instructions": "How angry is the customer?", "criteria": ["calm", "annoyed", "furious"]}
    }
  }'
