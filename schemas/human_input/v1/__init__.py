"""The protocol of the tool human_input over gRPC; the modules are made from the .proto by `make protos`."""
