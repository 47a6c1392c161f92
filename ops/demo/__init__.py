"""The demo: scripted agents on agentdojo's office tasks, every call through Placet."""
