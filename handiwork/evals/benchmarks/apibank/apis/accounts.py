"""APIs of accounts: users and their tokens, passwords, and the bank."""

from __future__ import annotations

import hashlib

from .api import Api, ApiError, api_call

FORGOT, VERIFY = "Forgot Password", "Verification Code"
CODE = 970420
"""The verification code that every reset of a password sends."""


class GetUserToken(Api):
    """Get a user's token, which other APIs need, by the username and the password."""

    @api_call
    def call(self, username: str, password: str) -> dict[str, str]:
        """Return {"token": TOKEN} of the user with that username and password."""
        accounts = self.databases.read("Account")
        if username not in accounts:
            raise ApiError("The username does not exist.")
        if accounts[username]["password"] != password:
            raise ApiError("The password is incorrect.")
        return {"token": accounts[username]["token"]}


class CheckToken(Api):
    """Check a token: whose is it?"""

    @api_call
    def call(self, token: str) -> str:
        """Return the username of the user with that token."""
        return self.username(token)


class RegisterUser(Api):
    """Register a new account, with a username, a password and an email address."""

    @api_call
    def call(self, username: str, password: str, email: str) -> dict[str, str]:
        """Return {"token": TOKEN} of the new user; to register the very same account again gives its token."""
        accounts = self.databases.read("Account")
        known = accounts.get(username)
        if known is not None:
            if (known["password"], known["email"]) != (password, email):
                raise ApiError("The username already exists.")
            return {"token": known["token"]}
        token = hashlib.sha256(repr((username, password, email)).encode()).hexdigest()[:18]
        accounts[username] = {"password": password, "token": token, "email": email}
        self.databases.write("Account", accounts)
        return {"token": token}


class DeleteAccount(Api):
    """Delete the account of a user."""

    @api_call
    def call(self, token: str) -> dict[str, str]:
        """Delete the account of the user with that token, and return {"status": "success"}."""
        username, accounts = self.username(token), self.databases.read("Account")
        del accounts[username]
        self.databases.write("Account", accounts)
        return {"status": "success"}


class ModifyPassword(Api):
    """Change the password of an account whose old password is known."""

    @api_call
    def call(self, token: str, old_password: str, new_password: str) -> dict[str, str]:
        """Replace the old password, and return {"status": "success"}."""
        username, accounts = self.username(token), self.databases.read("Account")
        if accounts[username]["password"] != old_password:
            raise ApiError("The old password is incorrect.")
        accounts[username]["password"] = new_password
        self.databases.write("Account", accounts)
        return {"status": "success"}


class ForgotPassword(Api):
    """Reset a forgotten password by two calls: the first one sends a verification code, the second one needs it."""

    @api_call
    def call(
        self,
        status: str,
        username: str = "",
        email: str = "",
        verification_code: int | None = None,
        new_password: str = "",
    ) -> int | str:
        """Send the code to a user's address, or set the new password.

        First with the status "Forgot Password", the username and the email address, which returns the verification
        code; then with the status "Verification Code", that code and the new password, which returns "success".
        """
        accounts, pending = self.databases.read("Account"), self.databases.read("PasswordReset")
        if status == FORGOT:
            if not username or not email:
                raise ApiError("The username and email are required for the first call.")
            if username not in accounts:
                raise ApiError("The username does not exist.")
            if accounts[username]["email"] != email:
                raise ApiError("The email is incorrect.")
            self.databases.write("PasswordReset", {"username": username, "code": CODE})
            return CODE
        if status != VERIFY:
            raise ApiError(f"The status is only '{FORGOT}' or '{VERIFY}'.")
        if not pending:
            raise ApiError(f"You need to call the API with status '{FORGOT}' at first.")
        if verification_code is None or not new_password:
            raise ApiError("The new password and verification code are required for the second call.")
        if int(verification_code) != pending["code"]:
            raise ApiError("The verification code is incorrect.")
        accounts[pending["username"]]["password"] = new_password
        self.databases.write("Account", accounts)
        return "success"


class OpenBankAccount(Api):
    """Open a bank account for a person."""

    @api_call
    def call(self, account: str, password: str, name: str) -> str:
        """Open the bank account for the person with that name: "success", or "failed" if it is there already."""
        opened = self.databases.read("OpenedBankAccounts")
        if account in opened:
            return "failed"
        opened[account] = {"password": password, "name": name}
        self.databases.write("OpenedBankAccounts", opened)
        return "success"


class QueryBalance(Api):
    """Query the balance of a user's bank account."""

    @api_call
    def call(self, token: str) -> float:
        """Return the balance of the user with that token."""
        bank = self.databases.read("Bank")
        username = self.username(token)
        if username not in bank:
            raise ApiError("The user does not have an account.")
        return bank[username]["balance"]
