"""The agent: it wants to pay an invoice, and runs on only when two treasurers have let it."""

from placet import Placet, current_call

with (
    Placet(agent="billing-bot") as placet,  # PLACET_URL and PLACET_TOKEN say where, and as whom
    placet.execution(id="invoice-march", request="Pay the March invoice") as run,
):

    @run.gated(annotations={"destructiveHint": True})
    def send_money(recipient: str, amount: float) -> str:
        """Stands for the bank: the idempotency key is what a real one would be given."""
        return f"paid {amount} to {recipient}, key {current_call().idempotency_key[:8]}"

    print(send_money("GB29NWBK60161331926819", 98.70))
