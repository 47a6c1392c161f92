"""The demo: scripted agents work on agentdojo's office tasks; every call goes through Placet."""
