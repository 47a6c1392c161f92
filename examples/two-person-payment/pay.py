"""The agent: it proposes to pay an invoice, and continues only when two treasurers have approved."""

from placet import Placet, current_call

with (
    Placet(agent="billing-bot") as placet,  # PLACET_URL and PLACET_TOKEN give the gateway and the caller
    placet.execution(id="invoice-march", request="Pay the March invoice") as run,
):

    @run.gated(annotations={"destructiveHint": True})
    def send_money(recipient: str, amount: float) -> str:
        """Stands for the bank: a real one would get the idempotency key."""
        return f"paid {amount} to {recipient}, key {current_call().idempotency_key[:8]}"

    print(send_money("GB29NWBK60161331926819", 98.70))
