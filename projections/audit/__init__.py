"""The audit trees (docs/audit.md): one RFC 6962 tree a tenant and partition, and the heads that are kept outside."""
