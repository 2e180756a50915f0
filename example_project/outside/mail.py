"""A real mail server (aiosmtpd) that keeps a row for each message it accepts."""

from email import message_from_bytes, policy

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope, Session
from asgiref.sync import sync_to_async
from django.conf import settings

from .models import Mail


class Journal:
    """aiosmtpd's handler: writes the row first and accepts the message after."""

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802
        """Record the message for each recipient and answer 250."""
        content = envelope.original_content or b""
        message = message_from_bytes(content, policy=policy.default)
        for recipient in envelope.rcpt_tos:
            await sync_to_async(Mail.objects.create)(
                recipient=recipient,
                order_reference=message.get("X-Order", ""),
                subject=message.get("Subject", "")[:255],
                size=len(content),
            )
        return "250 Message accepted for delivery"


def mail_server(port: int) -> Controller:
    """Return a mail server for the loopback interface; ``start()`` and ``stop()`` it."""
    return Controller(Journal(), hostname=settings.LOOPBACK, port=port)
