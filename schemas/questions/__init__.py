"""Questions to people: what an agent can ask, and what answers it. The gateway and the decider read these rules."""
