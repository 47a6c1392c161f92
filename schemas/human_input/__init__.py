"""The tool human_input over gRPC."""
