"""The audit trees (docs/audit.md): one RFC 6962 tree per tenant and partition, and the heads stored outside."""
