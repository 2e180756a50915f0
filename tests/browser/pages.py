"""Page objects: what a person can see and do on the pages, in the person's words."""

from .chromium import Browser
from .people import BOSS, PASSWORD
from .places import LIST


class Storefront:
    """The shop's pages."""

    def __init__(self, browser: Browser) -> None:
        self.browser = browser

    def order(self, *, currency: str = "EUR", courier: bool = False) -> str:
        """Choose a crystal on the first page, fill in the form, and return the new order's reference."""
        self.browser.open("/")
        self.browser.all("a.card")[0].click()
        self.browser.choose("#id_currency", currency)
        if courier:
            self.browser.click("#id_courier")
        self.browser.follow("button", "Place the order")
        assert self.browser.path.startswith("/orders/"), self.browser.path
        return self.browser.path.split("/")[2]

    @property
    def sentence(self) -> str:
        """What the order's page says about all its jobs."""
        return self.browser.text("#sentence")

    @property
    def jobs(self) -> dict[str, str]:
        """The status of each job of the order, by its title."""
        cells = "[row.cells[0].firstChild.textContent.trim(), row.querySelector('.badge').innerText]"
        rows = "[...document.querySelectorAll('.jobs tbody tr')]"
        return dict(self.browser.script(f"return {rows}.map(row => {cells})"))


class Admin:
    """The list of jobs and the page of a job."""

    def __init__(self, browser: Browser, sessions: dict[str, str]) -> None:
        self.browser = browser
        self._sessions = sessions

    def enter(self, user: str = BOSS, to: str = LIST) -> None:
        """Open a page as somebody who has logged in before."""
        cookie = {"name": "sessionid", "value": self._sessions[user], "url": self.browser.address}
        self.browser.command("Network.setCookie", **cookie)
        self.browser.open(to)
        assert self.browser.path == to, self.browser.path

    def log_in(self, user: str = BOSS, to: str = LIST) -> None:
        """Log in through the form."""
        self.browser.open(to)
        self.browser.find("#id_username").send_keys(user)
        self.browser.find("#id_password").send_keys(PASSWORD)
        self.browser.follow("input[type=submit]")
        assert self.browser.path == to, self.browser.path

    # --- the list

    def open_list(self, query: str = "") -> None:
        """Open the list."""
        self.browser.open(LIST + query)

    def filter_by(self, choice: str) -> None:
        """Follow the link of a filter whose label begins like this."""
        links = [each for each in self.browser.all(".pgq-choices a") if each.text.startswith(choice)]
        assert len(links) == 1, [each.text for each in links]
        with self.browser.new_page():
            links[0].click()

    def filter_from_to(self, first: str, last: str) -> None:
        """Type two moments ("YYYY-MM-DD HH:MM") into the filter by the time of enqueueing and apply it."""
        form = self.browser.all("form.pgq-times")[0]
        fields = form.find_elements("css selector", "input:not([type=hidden])")
        for field, typed in zip(fields, [*_typed(first), *_typed(last)], strict=True):
            field.send_keys(typed)
        with self.browser.new_page():
            form.find_element("css selector", "button").click()

    @property
    def listed(self) -> list[int]:
        """The ids of the jobs in the list, in its order."""
        ids = "[...document.querySelectorAll('#result_list .field-id')].map(cell => cell.innerText)"
        return [int(text) for text in self.browser.script(f"return {ids}")]

    def select(self, *job_ids: int) -> None:
        """Tick the boxes of these jobs."""
        for job_id in job_ids:
            self.browser.click(f"#result_list .action-select[value='{job_id}']")

    def act(self, action: str) -> None:
        """Run an action on what is ticked."""
        self.browser.choose("select[name=action]", action)
        self.browser.follow("button[name=index]")

    def confirm(self) -> None:
        """Say yes on the page that asks."""
        self.browser.follow(".pgq-decide input[type=submit]")

    # --- the page of a job

    def follow_job(self, job_id: int) -> None:
        """Go from the list to a job's page."""
        self.browser.follow("#result_list .field-id a", str(job_id))

    @property
    def state(self) -> str:
        """The state in words, as in the head of a job's page."""
        return self.browser.text(".pgq-head .pgq-pill").split()[-1]

    @property
    def buttons(self) -> list[str]:
        """The labels of the buttons on a job's page."""
        return [button.text for button in self.browser.all(".pgq-buttons button")]

    def press(self, label: str) -> None:
        """Click on a button of a job's page."""
        self.browser.follow(".pgq-buttons button", label)

    @property
    def told(self) -> str:
        """The messages on the page."""
        return self.browser.text(".messagelist")


def _typed(moment: str) -> tuple[str, str]:
    """Return what an American types into a date field and a time field."""
    date, _, time = moment.partition(" ")
    year, month, day = date.split("-")
    hour, minute = map(int, time.split(":"))
    return f"{month}{day}{year}", f"{(hour - 1) % 12 + 1:02}{minute:02}{'AM' if hour < 12 else 'PM'}"
