"""The main job, step by step. Each step ends with what the ERP's database itself says (``workers.erp.demo.oracle``)."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx

from staging.client.api_client import ApiClient
from staging.contracts.error import ErrorCode
from staging.contracts.preparation import PrepareRequest
from staging.contracts.status import StatusCode as C
from staging.domain.errors import OpstageError
from staging.domain.identity import Actor, ActorKind, Tenant, new_id
from staging.domain.operation import Operation
from staging.services.view import view_of
from workers.erp.demo import facts, foreign, oracle
from workers.story.stage import Process, Stage, wait_for

TENANT = Tenant("B001", "S01")
_WAIT_S = 60.0
QUOTATION = {
    "title": "2027年企业台历",
    "contact": "王小姐",
    "parts": [
        {
            "name": "封面",
            "material": "铜版纸",
            "gramWeight": 300,
            "quantity": 3000,
            "price": "0.5200",
            "tiers": [{"quantity": 1000, "price": "0.68"}, {"quantity": 5000, "price": "0.47"}],
        },
        {"name": "内页", "material": "哑粉纸", "gramWeight": 157, "quantity": 39000, "price": "0.0850"},
    ],
}
_TOTAL = Decimal("4875.00")  # 3000 x 0.52 + 39000 x 0.085


class Story:
    """``erp`` calls go straight to the database, never through the product."""

    def __init__(self, stage: Stage, engine: Any) -> None:
        self.stage, self.n = stage, stage.narrator
        self.services = stage.services
        self.engine = engine  # of our own: what is verified never went through the product
        locale = stage.narrator.locale
        self.agent = Actor(TENANT, "u-lin", ActorKind.AGENT, locale)
        self.person = Actor(TENANT, "u-lin", ActorKind.PERSON, locale)
        self.keeper = Actor(TENANT, "u-wang", ActorKind.PERSON, locale)
        self.stranger = Actor(Tenant("B002", "S01"), "u-gao", ActorKind.PERSON, locale)

    def erp(self, ask: Any, *args: Any, **kw: Any) -> Any:
        with self.engine.connect() as connection:
            return ask(connection, *args, **kw)

    def quotations(self, title: str) -> int:
        return int(self.erp(oracle.count, "quo_quotationmaster", sTitle=title))

    def prepare(self, actor: Actor, **request: Any) -> Any:
        return self.services.prepare.prepare(actor, PrepareRequest(**request, conversation_id="chat-42"))

    def confirm(self, actor: Actor, preparation_id: str) -> Operation:
        return self.services.confirm.confirm(actor, preparation_id)[0]

    def ended(self, actor: Actor, op_id: str) -> Operation:
        return self.services.inspect.wait_terminal(actor, op_id, _WAIT_S)

    # --- the main job ----------------------------------------------------------------------------------------------

    def main_job(self) -> str:
        """Stage, preview, confirm, execute, tell. Returns the preparation's id."""
        n, title = self.n, str(QUOTATION["title"])
        n.step(
            "智能体暂存一张报价单（部件与阶梯价）", "An agent stages a quotation with parts and price tiers"
        )
        customer = self.erp(facts.a_customer, TENANT.brands_id)
        before = self.erp(oracle.counts)
        prepared = self.prepare(
            self.agent,
            form_id="quotation",
            op_type="create",
            payload={**QUOTATION, "customer": customer.sCustomerNo},
        )
        n.preview(prepared.preview)
        n.check("ERP 没有任何变化", "the ERP is unchanged", self.erp(oracle.counts) == before)
        refusal = n.refused(lambda: self.confirm(self.agent, prepared.preparation_id), OpstageError)
        n.check(
            "智能体自己不能确认",
            "the agent itself cannot confirm",
            _is(refusal, ErrorCode.FORBIDDEN),
            refusal,
        )

        n.step("本人确认，Celery 执行进程执行", "The person confirms, a Celery worker executes")
        with self.stage.listening(TENANT.brands_id, TENANT.subsidiary_id, "u-lin") as heard:
            operation = self.confirm(self.person, prepared.preparation_id)
            n.say(f"操作 {operation.id}", f"operation {operation.id}")
            done = self.ended(self.person, operation.id)
            wait_for(lambda: any(e["code"] == C.EXECUTED for e in heard), 10, "the message of the end")
        n.check("执行成功 200", "executed, 200", done.code == C.EXECUTED, done.error_message)
        codes = [e["code"] for e in heard if e["opId"] == operation.id]
        n.check(
            "发布订阅依次收到 100、101、200",
            "pub/sub told 100, 101, 200 in turn",
            codes == [100, 101, 200],
            codes,
        )

        n.step("从 ERP 数据库读回单据", "The document, read back from the ERP's database")
        bill = self.erp(oracle.one, "quo_quotationmaster", sTitle=title)
        n.say(
            f"{bill.sBillNo}  {bill.sTitle}  {bill.dTotalAmount}",
            f"{bill.sBillNo}  {bill.sTitle}  {bill.dTotalAmount}",
        )
        n.check(
            "主表一行，合计由系统算出",
            "one master row, total computed",
            bill.dTotalAmount == _TOTAL,
            bill.dTotalAmount,
        )
        parts = self.erp(oracle.count, "quo_quotationpart", sParentId=bill.sId)
        n.check("两个部件", "two parts", parts == 2, parts)
        grown = {t: c - before[t] for t, c in self.erp(oracle.counts).items() if c != before[t]}
        expected = {"quo_quotationmaster": 1, "quo_quotationpart": 2, "quo_quotationtier": 2}
        n.check("除此之外没有写入任何东西", "and nothing else was written", grown == expected, grown)
        n.check(
            "返回的单据就是它",
            "the operation names this record",
            done.result_bill_id == bill.sId,
            done.result_bill_id,
        )
        return str(prepared.preparation_id)

    def http_door(self, preparation_id: str) -> None:
        n = self.n
        n.step("同一操作，从 HTTP 接口与待办页面看", "The same operation through the HTTP door and its page")
        url = self.stage.api()
        n.say(
            f"待办页面 {url}/（随演示关闭；opstage up 让它一直开着）",
            f"my AI todos: {url}/ (closes with the demo; opstage up keeps it open)",
        )
        page = httpx.get(f"{url}/", headers={"Accept-Language": n.locale}, timeout=10)
        n.check(
            "页面已就绪", "the page is there", "text/html" in page.headers["content-type"], page.status_code
        )
        with ApiClient(url, self.stage.token("u-lin", "agent"), n.locale) as agent:
            (operation,) = agent.get("todos")["recent"]
            n.check(
                "智能体看到已执行 200", "the agent sees it executed, 200", operation["code"] == 200, operation
            )
            confirm = ("preparations", preparation_id, "confirm")
            refusal = n.refused(lambda: agent.post(*confirm, body={}), OpstageError)
            n.check(
                "它在这里同样不能确认",
                "nor can it confirm here",
                _is(refusal, ErrorCode.FORBIDDEN),
                refusal,
            )
        with ApiClient(url, self.stage.token("u-lin", "person"), n.locale) as person:
            (again,) = person.post(*confirm, body={})["operations"]
            n.check(
                "本人再确认得到同一操作", "the person's confirm gives the same operation", again == operation
            )

    # --- what would otherwise go wrong -------------------------------------------------------------------------------

    def duplicate_confirm(self, preparation_id: str) -> None:
        n = self.n
        n.step("重复确认（双击、重发、网络重试）", "The same confirm again (double click, resend, retry)")
        first = self.confirm(self.person, preparation_id)
        second = self.confirm(self.person, preparation_id)
        n.check("返回同一个操作", "returns the same operation", first.id == second.id)
        count = self.quotations(str(QUOTATION["title"]))
        n.check("ERP 里仍然只有一张", "still one document in the ERP", count == 1, count)

    def stale_update(self) -> None:
        n = self.n
        n.step(
            "确认之后、执行之前，同事改了同一字段",
            "A colleague changes the same field between confirm and execution",
        )
        bill = self.erp(oracle.one, "quo_quotationmaster", sTitle=QUOTATION["title"])
        prepared = self.prepare(
            self.agent,
            form_id="quotation",
            op_type="update",
            record=bill.sBillNo,
            payload={"contact": "张先生"},
        )
        # The worker is busy elsewhere: it is stopped while the colleague saves in the ERP's own form.
        self.worker.stop()
        operation = self.confirm(self.person, prepared.preparation_id)
        with self.engine.begin() as connection:
            facts.colleague_edits(connection, bill.sId, "李经理")
        self.worker = self.stage.worker("second")
        done = self.ended(self.person, operation.id)
        n.say(done.message, done.message)
        for c in (view_of(done, n.locale).error or {}).get("conflict") or []:
            n.say(
                f"{c['label']}：看到的是“{c['seen']}”，现在是“{c['now']}”，拟改为“{c['proposed']}”",
                f'{c["label"]}: seen "{c["seen"]}", now "{c["now"]}", proposed "{c["proposed"]}"',
            )
        n.check(
            "拒绝 409，并说明变化", "refused with 409 and what changed", done.code == C.CONFLICT, done.code
        )
        now = self.erp(oracle.one, "quo_quotationmaster", sId=bill.sId)
        n.check("同事的修改原样保留", "the colleague's change stands", now.sContact == "李经理", now.sContact)

    def over_issue(self) -> None:
        n = self.n
        n.step("出库数量超过库存", "More stock is issued than there is")
        stock = self.erp(facts.a_stocked_place, TENANT.brands_id)
        wanted = stock.free + 1
        line = {"product": stock.product_no, "warehouse": stock.warehouse_no, "quantity": str(wanted)}
        prepared = self.prepare(
            self.keeper,
            form_id="stock_outbound",
            op_type="create",
            payload={"type": "other", "lines": [line]},
        )
        created = self.ended(self.keeper, self.confirm(self.keeper, prepared.preparation_id).id)
        n.check(
            "出库单已建立（未审核，库存不动）",
            "the issue note exists, not examined yet",
            created.code == C.EXECUTED,
            created.message,
        )
        before = self.erp(oracle.level, TENANT.brands_id, stock.warehouse_no, stock.product_no)
        examine = self.prepare(
            self.keeper, form_id="stock_outbound", op_type="examine", record=created.result_bill_id
        )
        warned = [warning.message for warning in examine.preview.warnings]
        n.check(f"预览已提醒：{warned}", f"the preview warns already: {warned}", bool(warned))
        op_id = self.confirm(self.keeper, examine.preparation_id).id
        done = self.ended(self.keeper, op_id)
        n.say(done.message, done.message)
        n.check(
            "业务规则拒绝 422", "refused by the business rule, 422", done.code == C.RULE_REFUSED, done.code
        )
        after = self.erp(oracle.level, TENANT.brands_id, stock.warehouse_no, stock.product_no)
        n.check("库存一件不少", "the stock is untouched", after == before, after)

    def other_tenant(self, preparation_id: str) -> None:
        n = self.n
        n.step("另一家公司来试探", "Another company tries")
        (operation,) = self.services.confirm.confirm(self.person, preparation_id)
        seen = n.refused(lambda: self.services.inspect.get(self.stranger, operation.id), OpstageError)
        missing = n.refused(lambda: self.services.inspect.get(self.stranger, new_id()), OpstageError)
        n.check(
            "看不见：与不存在的编号同样是 404",
            "it sees nothing: 404, the same as for an id that does not exist",
            _is(seen, ErrorCode.OPERATION_NOT_FOUND) and str(seen) == str(missing),
            seen,
        )
        taken = n.refused(lambda: self.services.confirm.confirm(self.stranger, preparation_id), OpstageError)
        same = _is(taken, ErrorCode.PREPARATION_NOT_FOUND_OR_EXPIRED)
        n.check("也不能替别人确认", "nor can it confirm for others", same, taken)

    def plain_sql(self) -> None:
        n = self.n
        n.step("别的程序直接用 SQL 插入一行", "Another program inserts a row by plain SQL")
        customer = self.erp(facts.a_customer, TENANT.brands_id)
        op_id = new_id()
        with self.engine.begin() as connection:
            statement = foreign.insert_row(
                connection,
                sId=op_id,
                sBrandsId=TENANT.brands_id,
                sSubsidiaryId=TENANT.subsidiary_id,
                sMakePerson="u-lin",
                sOpType="update",
                sTargetFormId="customer",
                sTargetBillId=customer.sId,
                sPayload='{"contact": "赵主任"}',
            )
        n.say(statement, statement)
        done = self.ended(self.person, op_id)
        n.check("同样被执行 200", "executed like any other, 200", done.code == C.EXECUTED, done.error_message)
        now = self.erp(oracle.one, "elecustomer", sId=customer.sId)
        n.check("ERP 里已更新", "the ERP shows it", now.sContact == "赵主任", now.sContact)

    def killed_worker(self) -> None:
        n, title = self.n, "断电测试画册"
        n.step("执行到一半，kill -9 杀掉执行进程", "A worker is killed with kill -9 in mid-execution")
        self.worker.stop()
        marks = Path(self.stage.settings.data_dir) / "failpoints"
        marks.mkdir(exist_ok=True)
        # This one stops dead after the business change and before COMMIT: the worst moment there is.
        unlucky = self.stage.worker("unlucky", OPSTAGE_FAILPOINTS="W6:stop", OPSTAGE_FAILPOINT_DIR=str(marks))
        customer = self.erp(facts.a_customer, TENANT.brands_id)
        payload = {**QUOTATION, "title": title, "customer": customer.sCustomerNo}
        prepared = self.prepare(self.agent, form_id="quotation", op_type="create", payload=payload)
        with self.stage.listening(TENANT.brands_id, TENANT.subsidiary_id, "u-lin"):
            operation = self.confirm(self.person, prepared.preparation_id)
            wait_for(lambda: (marks / "W6").exists(), 30, "the worker is in mid-execution")
            unlucky.kill9()
            n.say(
                "执行进程已被杀死，业务变更尚未提交", "the worker is dead, the business change not committed"
            )
            n.check("ERP 里没有半张单据", "no half document in the ERP", self.quotations(title) == 0)
            self.worker = self.stage.worker("third")
            done = self.ended(self.person, operation.id)
        n.check(
            "租约到期后由另一进程完成 200",
            "finished by another worker, 200",
            done.code == C.EXECUTED,
            done.message,
        )
        n.check(
            "恰好一张，不多不少", "exactly one document", self.quotations(title) == 1, self.quotations(title)
        )
        events = [(e.code, e.verb) for e in self.services.inspect.events(self.person, operation.id)]
        n.say(
            " → ".join(f"{code} {verb}" for code, verb in events),
            " → ".join(f"{code} {verb}" for code, verb in events),
        )
        n.check(
            "经过 102（先查台账，再执行）",
            "by way of 102: the ledger first",
            C.UNKNOWN in [c for c, _ in events],
        )
        wrong = self.erp(oracle.inconsistencies)
        n.check("整个 ERP 账实相符", "the whole ERP adds up", not wrong, wrong)

    worker: Process


def _is(error: Exception, code: ErrorCode) -> bool:
    return isinstance(error, OpstageError) and error.code is code
