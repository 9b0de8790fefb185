"""What the local AWS promises of DynamoDB's expressions on nested maps, asked of a launched process with boto3."""

import concurrent.futures
import re

import botocore.exceptions

import test_launcher
from test_launcher import Case

TABLE = "reveille-ledger"
KEY = {"pk": {"S": "pool#voice"}, "sk": {"S": "-"}}
BAD_PATH = "The document path provided in the update expression is invalid for update"
LOST = "ConditionalCheckFailedException"
INVALID = "ValidationException"
NOW = "2026-11-30T00:00:00Z"
PAST, FUTURE = NOW.replace("2026", "2025"), NOW.replace("2026", "2027")

NAMES = {
    "#all": "all",
    "#by": "by",
    "#c": "10.0.0.1",
    "#claim": "claim#i-0abc",
    "#demand": "demand",
    "#gate": "gate",
    "#id": "job.2",
    "#kind": "kind",
    "#l": "leases#i-0abc",
    "#minute": "minute",
    "#rate": "rate",
    "#run": "run",
    "#seen": "seen",
    "#until": "until",
    "#w": "waits#i-0abc",
    "#x": "job#1",
}


def setUpModule():
    global aws
    test_launcher.setUpModule()
    aws = test_launcher.aws


def tearDownModule():
    test_launcher.tearDownModule()


def value(plain):
    """As DynamoDB writes it."""
    if isinstance(plain, dict):
        return {"M": {name: value(one) for name, one in plain.items()}}
    return {"S": plain} if isinstance(plain, str) else {"N": str(plain)}


def item(attributes):
    return KEY | {name: value(one) for name, one in attributes.items()}


def key(pk):
    return {"pk": {"S": pk}, "sk": {"S": "-"}}


def at_once(call, times):
    with concurrent.futures.ThreadPoolExecutor(max_workers=50) as pool:
        return list(pool.map(call, range(times)))


def lease(until, by="a"):
    return {"by": by, "until": until}


class Ledger(Case):
    def setUp(self):
        super().setUp()
        self.dynamodb = aws.client("dynamodb")
        self.dynamodb.create_table(
            TableName=TABLE,
            BillingMode="PAY_PER_REQUEST",
            AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk")],
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
        )

    def put(self, **attributes):
        """Attributes whose names are those of NAMES without the sign."""
        self.dynamodb.put_item(TableName=TABLE, Item=item({NAMES[f"#{name}"]: one for name, one in attributes.items()}))

    def request(self, update, condition=None, **values):
        """Names and values that the expressions do not use would be refused."""
        used = set(re.findall(r"[#:]\w+", f"{update} {condition}"))
        request = {
            "TableName": TABLE,
            "Key": KEY,
            "UpdateExpression": update,
            "ReturnValues": "ALL_NEW",
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
            "ExpressionAttributeNames": {name: real for name, real in NAMES.items() if name in used},
        }
        if given := {f":{name}": value(one) for name, one in values.items() if f":{name}" in used}:
            request["ExpressionAttributeValues"] = given
        return request if condition is None else request | {"ConditionExpression": condition}

    def update(self, update, condition=None, **values):
        return self.dynamodb.update_item(**self.request(update, condition, **values))["Attributes"]

    def refused(self, code, update, condition=None, **values):
        request = self.request(update, condition, **values)
        return self.assert_refused(code, self.dynamodb.update_item, **request)

    def lost(self, update, condition, **values):
        """A lost condition changes nothing and brings the item, if there is one."""
        before = self.kept()
        self.assertEqual(before, self.refused(LOST, update, condition, **values).get("Item"))
        self.assertEqual(before, self.kept())

    def invalid(self, update, condition=None, message=BAD_PATH, **values):
        before = self.kept()
        response = self.refused(INVALID, update, condition, **values)
        self.assertEqual(message, response["Error"]["Message"])
        self.assertEqual(before, self.kept())

    def kept(self):
        return self.dynamodb.get_item(TableName=TABLE, Key=KEY, ConsistentRead=True).get("Item")

    def won(self, *args, **values):
        try:
            self.update(*args, **values)
        except botocore.exceptions.ClientError as error:
            self.assertEqual(LOST, error.response["Error"]["Code"])
            return False
        return True


class Leases(Ledger):
    """A lease of a map of leases, in place of one that has ended."""

    TAKE = "SET #demand = if_not_exists(#demand, :zero) + :one, #l.#id = :lease REMOVE #l.#x, #w.#id"
    FREE = (
        "size(#l) < :most AND attribute_not_exists(#l.#id) AND #l.#x.#until <= :now"
        " AND (attribute_not_exists(#claim) OR (#claim.#run = :run AND #claim.#kind = :kind))"
        " AND (attribute_not_exists(#gate) OR #gate.#until <= :now)"
    )
    VALUES = {"zero": 0, "one": 1, "lease": lease(FUTURE), "most": 4, "now": NOW, "run": "r-1", "kind": "wake"}
    ENDED = {"job#1": lease(PAST)}
    CLAIM = {"run": "r-1", "kind": "wake"}

    def take(self, **more):
        return self.update(self.TAKE, self.FREE, **(self.VALUES | more))

    def test_a_lease_takes_the_place_of_an_ended_one(self):
        self.put(l=self.ENDED, w={"job.2": NOW, "job#3": NOW}, claim=self.CLAIM, gate={"until": NOW})
        expected = item(
            {
                "leases#i-0abc": {"job.2": lease(FUTURE)},
                "waits#i-0abc": {"job#3": NOW},
                "claim#i-0abc": self.CLAIM,
                "gate": {"until": NOW},
                "demand": 1,
            }
        )
        self.assertEqual(expected, self.take())
        self.assertEqual(expected, self.kept())

    def test_what_is_removed_may_be_absent_from_its_map(self):
        self.put(l=self.ENDED, w={}, demand=7)
        taken = self.take()
        self.assertEqual((value({}), value(8)), (taken["waits#i-0abc"], taken["demand"]))

    def test_each_part_of_the_condition_can_lose(self):
        full = self.ENDED | {f"job {number}": lease(FUTURE) for number in range(3)}
        cases = {
            "full": {"l": full},
            "taken": {"l": self.ENDED | {"job.2": lease(FUTURE)}},
            "not ended": {"l": {"job#1": lease(FUTURE)}},
            "nothing to end": {"l": {"job#3": lease(PAST)}},
            "no end": {"l": {"job#1": {"by": "a"}}},
            "an end of another type": {"l": {"job#1": lease(0)}},
            "no lease": {"l": {"job#1": PAST}},
            "another run's claim": {"l": self.ENDED, "claim": self.CLAIM | {"run": "r-2"}},
            "another kind of claim": {"l": self.ENDED, "claim": self.CLAIM | {"kind": "sleep"}},
            "a claim without a kind": {"l": self.ENDED, "claim": {"run": "r-1"}},
            "closed": {"l": self.ENDED, "gate": {"until": FUTURE}},
            "closed for ever": {"l": self.ENDED, "gate": {"by": "a"}},
            "empty": {"l": {}},
            "no leases": {"demand": 1},
            "leases that are a number": {"l": 3},
        }
        for name, attributes in cases.items():
            with self.subTest(name):
                self.put(w={}, **attributes)
                self.lost(self.TAKE, self.FREE, **self.VALUES)

    def test_an_absent_item_loses_and_is_not_made(self):
        self.lost(self.TAKE, self.FREE, **self.VALUES)
        self.assertIsNone(self.kept())

    def test_a_path_without_its_map_is_invalid(self):
        cases = {
            "no leases": {"w": {}},
            "no waits": {"l": {}},
            "leases that are a text": {"l": "x", "w": {}},
            "waits that are a number": {"l": {}, "w": 1},
        }
        for name, attributes in cases.items():
            with self.subTest(name):
                self.put(**attributes)
                self.invalid(self.TAKE, **self.VALUES)

    def test_a_path_into_an_absent_item_is_invalid(self):
        for update in (self.TAKE, "SET #l.#id = :lease", "REMOVE #l.#x"):
            with self.subTest(update):
                self.invalid(update, **self.VALUES)
                self.assertIsNone(self.kept())

    def test_a_deep_path_needs_every_map_on_it(self):
        self.put(l={})
        self.invalid("SET #l.#id.#until = :now", now=NOW)
        self.invalid("REMOVE #l.#id.#until")
        self.invalid("SET #l.#l.#l = :now", now=NOW)

    def test_one_path_inside_another_is_refused(self):
        """Whatever the placeholders are called, and before the condition is looked at."""
        values = {"map": {}, "now": NOW, "most": 0}
        cases = {
            "SET #l = :map, #l.#id = :map": "[leases#i-0abc], path two: [leases#i-0abc, job.2]",
            "SET #l.#id.#until = :now REMOVE #l.#id": "[leases#i-0abc, job.2, until], path two: [leases#i-0abc, job.2]",
            "SET seen = :now REMOVE #seen": "[seen], path two: [seen]",
        }
        self.put(l={"job.2": lease(PAST)})
        for update, paths in cases.items():
            with self.subTest(update):
                message = (
                    "Invalid UpdateExpression: Two document paths overlap with each other; "
                    f"must remove or rewrite one of these paths; path one: {paths}"
                )
                self.invalid(update, message=message, **values)
                self.invalid(update, "size(#l) < :most", message=message, **values)

    def test_the_same_key_under_two_placeholders_is_refused(self):
        self.put(l=self.ENDED)
        request = self.request("SET #l.#id = :now REMOVE #l.#x", now=NOW)
        request["ExpressionAttributeNames"] |= {"#id": "job#1"}
        response = self.assert_refused(INVALID, self.dynamodb.update_item, **request)
        self.assertIn("overlap", response["Error"]["Message"])

    def test_an_undefined_value_or_name_is_refused_before_the_condition(self):
        for gone, kind in {":now": "Values", "#until": "Names"}.items():
            with self.subTest(gone):
                request = self.request("SET #l.#until = :now", "#gate.#by = :by", now=NOW, by="a")
                del request[f"ExpressionAttribute{kind}"][gone]
                response = self.assert_refused(INVALID, self.dynamodb.update_item, **request)
                self.assertIn(f"not defined; attribute {kind[:-1].lower()}: {gone}", response["Error"]["Message"])

    def test_an_expression_has_a_largest_size(self):
        self.put(seen=PAST)
        update, condition = "SET #seen = :now".ljust(4096), "#seen = :past".ljust(4096)
        self.assertEqual(item({"seen": NOW}), self.update(update, condition, now=NOW, past=PAST))
        message = "Expression size has exceeded the maximum allowed size; expression size: 4097"
        for kind, longer in {"Update": (f"{update} ", condition), "Condition": (update, f"{condition} ")}.items():
            with self.subTest(kind):
                self.invalid(*longer, message=f"Invalid {kind}Expression: {message}", now=NOW, past=PAST)

    def test_values_of_different_types_are_not_equal(self):
        client = self.dynamodb
        client.put_item(TableName=TABLE, Item=KEY | {"seen": {"N": "1"}})
        for other in ({"BOOL": True}, {"S": "1"}, {"NULL": True}):
            for condition, wins in {"#seen = :v": False, "#seen <> :v": True, "#gate = :v": False}.items():
                with self.subTest(condition, other=other):
                    request = self.request("SET #demand = :v", condition, v=1)
                    request["ExpressionAttributeValues"] = {":v": other}
                    if wins:
                        client.update_item(**request)
                    else:
                        self.assert_refused(LOST, client.update_item, **request)

    def test_size_counts_the_entries_of_a_map(self):
        for count in range(3):
            with self.subTest(count):
                self.put(l={f"job {number}": lease(FUTURE) for number in range(count)})
                found = [size for size in range(4) if self.won("SET #seen = :now", "size(#l) = :n", now=NOW, n=size)]
                self.assertEqual([count], found)

    def test_four_of_fifty_at_once_get_a_lease(self):
        update = self.TAKE.replace("#l.#x, ", "")
        condition = self.FREE.replace(" AND #l.#x.#until <= :now", "")
        self.put(l={}, w={})

        def take(number):
            request = self.request(update, condition, **self.VALUES)
            request["ExpressionAttributeNames"] |= {"#id": f"job#{number}"}
            try:
                self.dynamodb.update_item(**request)
            except botocore.exceptions.ClientError as error:
                self.assertEqual(LOST, error.response["Error"]["Code"])
                self.assertEqual(4, len(error.response["Item"]["leases#i-0abc"]["M"]))
                return False
            return True

        self.assertEqual(4, sum(at_once(take, 50)))
        kept = self.kept()
        self.assertEqual((4, value(4)), (len(kept["leases#i-0abc"]["M"]), kept["demand"]))

    def test_four_of_fifty_at_once_take_the_place_of_an_ended_one(self):
        """Each ends another lease: the size stays, so the end of the leases bounds them."""
        self.put(l={f"ended {number}": lease(PAST) for number in range(4)}, w={})

        def take(number):
            request = self.request(self.TAKE, self.FREE, **(self.VALUES | {"most": 5}))
            request["ExpressionAttributeNames"] |= {"#id": f"job#{number}", "#x": f"ended {number % 4}"}
            try:
                self.dynamodb.update_item(**request)
            except botocore.exceptions.ClientError as error:
                self.assertEqual(LOST, error.response["Error"]["Code"])
                return False
            return True

        self.assertEqual(4, sum(at_once(take, 50)))
        self.assertEqual(4, len(self.kept()["leases#i-0abc"]["M"]))


class WholeMaps(Ledger):
    def test_are_set_where_they_are_absent(self):
        update, condition = "SET #l = :map, #seen = :now", "attribute_not_exists(#l)"
        for name, attributes in {"no item": None, "no map": {"demand": 1}}.items():
            for map in ({}, {"job#1": lease(PAST)}):
                with self.subTest(name, map=map):
                    self.dynamodb.delete_item(TableName=TABLE, Key=KEY)
                    if attributes:
                        self.put(**attributes)
                    expected = item((attributes or {}) | {"leases#i-0abc": map, "seen": NOW})
                    self.assertEqual(expected, self.update(update, condition, map=map, now=NOW))
                    self.lost(update, condition, map={"other": lease(NOW)}, now=FUTURE)

    def test_an_item_has_a_largest_size_and_no_half_of_an_update_is_kept(self):
        message = "Item size to update has exceeded the maximum allowed size"
        values = {"map": {}, "now": NOW, "big": "x" * 250_000}
        self.invalid("SET #seen = :now, #w = :big, #l = :big", message=message, **values)
        self.assertIsNone(self.kept())
        self.put(l={"job.2": "x" * 250_000})
        self.invalid("SET #seen = :now, #l.#x = :big", message=message, **values)

    def test_a_map_that_was_set_is_the_item_s_own(self):
        """Neither the map that it came from nor what was returned before changes with it."""
        self.put(l={"job#1": lease(PAST)})
        before = self.update("SET #w = #l")
        self.update("SET #w.#x.#until = :now", now=NOW)
        self.assertEqual(value(lease(PAST)), before["waits#i-0abc"]["M"]["job#1"])
        kept = self.kept()
        self.assertEqual(value(lease(PAST)), kept["leases#i-0abc"]["M"]["job#1"])
        self.assertEqual(value(lease(NOW)), kept["waits#i-0abc"]["M"]["job#1"])


class Rates(Ledger):
    COUNT = "SET #rate.#all = #rate.#all + :one, #rate.#c = if_not_exists(#rate.#c, :zero) + :one"
    BELOW = (
        "#rate.#minute = :minute AND #rate.#all < :most"
        " AND (attribute_not_exists(#rate.#c) OR #rate.#c < :each)"
    )
    FRESHEN = "SET #rate = :fresh"
    OLD = "attribute_not_exists(#rate) OR #rate.#minute < :minute"
    VALUES = {"zero": 0, "one": 1, "minute": 5, "most": 1000, "each": 1000}

    def fresh(self, minute):
        return {"minute": minute, "all": 0}

    def count(self, **more):
        return self.update(self.COUNT, self.BELOW, **(self.VALUES | more))

    def test_all_and_each_are_counted(self):
        self.put(rate=self.fresh(5), seen=NOW)
        self.assertEqual(value({"minute": 5, "all": 1, "10.0.0.1": 1}), self.count()["rate"])
        expected = item({"rate": {"minute": 5, "all": 2, "10.0.0.1": 2}, "seen": NOW})
        self.assertEqual(expected, self.count())
        self.assertEqual(expected, self.kept())

    def test_each_part_of_the_condition_can_lose(self):
        cases = {
            "another minute": {"minute": 4, "all": 1},
            "all": {"minute": 5, "all": 1000},
            "each": {"minute": 5, "all": 999, "10.0.0.1": 1000},
            "no count": {"minute": 5},
            "a minute that is a text": {"minute": "5", "all": 1},
            "a count that is a text": {"minute": 5, "all": "1"},
        }
        for name, rate in cases.items():
            with self.subTest(name):
                self.put(rate=rate)
                self.lost(self.COUNT, self.BELOW, **self.VALUES)

    def test_numbers_are_compared_as_numbers(self):
        self.put(rate={"minute": 5, "all": 9})
        self.assertEqual(value(10), self.count(most=10)["rate"]["M"]["all"])
        self.lost(self.COUNT, self.BELOW, **(self.VALUES | {"most": 10}))

    def test_nothing_is_counted_without_a_rate(self):
        self.lost(self.COUNT, self.BELOW, **self.VALUES)
        self.put(seen=NOW)
        self.lost(self.COUNT, self.BELOW, **self.VALUES)
        self.invalid("SET #rate.#c = if_not_exists(#rate.#c, :zero) + :one", zero=0, one=1)

    def test_a_rate_is_made_anew_once_a_minute(self):
        for before in (None, {"seen": NOW}, {"rate": {"minute": 4, "all": 9, "10.0.0.1": 9}}):
            with self.subTest(before):
                self.dynamodb.delete_item(TableName=TABLE, Key=KEY)
                if before:
                    self.put(**before)
                made = self.update(self.FRESHEN, self.OLD, fresh=self.fresh(5), minute=5)
                self.assertEqual(item((before or {}) | {"rate": self.fresh(5)}), made)
                self.lost(self.FRESHEN, self.OLD, fresh=self.fresh(5), minute=5)
                self.lost(self.FRESHEN, self.OLD, fresh=self.fresh(4), minute=4)

    def test_two_hundred_counts_at_once_are_two_hundred(self):
        self.put(rate=self.fresh(5))
        counts = at_once(lambda _: int(self.count()["rate"]["M"]["all"]["N"]), 200)
        self.assertEqual(list(range(1, 201)), sorted(counts))
        self.assertEqual(item({"rate": {"minute": 5, "all": 200, "10.0.0.1": 200}}), self.kept())

    def test_the_limit_holds_for_a_hundred_at_once(self):
        self.put(rate=self.fresh(5))
        values = self.VALUES | {"most": 35}
        self.assertEqual(35, sum(at_once(lambda _: self.won(self.COUNT, self.BELOW, **values), 100)))
        self.assertEqual(value({"minute": 5, "all": 35, "10.0.0.1": 35}), self.kept()["rate"])

    def test_one_of_fifty_makes_it_anew(self):
        made = at_once(lambda _: self.won(self.FRESHEN, self.OLD, fresh=self.fresh(5), minute=5), 50)
        self.assertEqual(1, sum(made))


class Renewals(Ledger):
    RENEW = "SET #l.#id.#until = :until, #seen = :now"
    MINE = "attribute_exists(#l.#id) AND #l.#id.#by = :by AND #l.#id.#until > :now"
    GIVE_BACK = "REMOVE #l.#id SET #seen = :now"
    BY_ME = "#l.#id.#by = :by"
    VALUES = {"until": FUTURE, "now": NOW, "by": "a"}
    SOON = NOW.replace("00Z", "01Z")

    def test_a_lease_is_renewed(self):
        self.put(l={"job.2": lease(self.SOON), "job#1": lease(PAST)})
        expected = item({"leases#i-0abc": {"job.2": lease(FUTURE), "job#1": lease(PAST)}, "seen": NOW})
        self.assertEqual(expected, self.update(self.RENEW, self.MINE, **self.VALUES))
        self.assertEqual(expected, self.kept())

    def test_a_lease_is_given_back(self):
        self.put(l={"job.2": lease(self.SOON), "job#1": lease(PAST)})
        expected = item({"leases#i-0abc": {"job#1": lease(PAST)}, "seen": NOW})
        self.assertEqual(expected, self.update(self.GIVE_BACK, self.BY_ME, **self.VALUES))
        self.lost(self.GIVE_BACK, self.BY_ME, **self.VALUES)

    def test_the_last_lease_leaves_an_empty_map(self):
        self.put(l={"job.2": lease(self.SOON)})
        given_back = self.update(self.GIVE_BACK, self.BY_ME, **self.VALUES)
        self.assertEqual(value({}), given_back["leases#i-0abc"])

    def test_only_one_s_own_that_has_not_ended(self):
        cases = {
            "no item": None,
            "no leases": {"seen": PAST},
            "leases that are a text": {"l": "x"},
            "no lease": {"l": {"job#1": lease(FUTURE)}},
            "another's": {"l": {"job.2": lease(FUTURE, by="b")}},
            "ended": {"l": {"job.2": lease(NOW)}},
            "an end of another type": {"l": {"job.2": lease(2**40)}},
        }
        for name, attributes in cases.items():
            with self.subTest(name):
                if attributes:
                    self.put(**attributes)
                self.lost(self.RENEW, self.MINE, **self.VALUES)
                if "ended" not in name and "end of" not in name:
                    self.lost(self.GIVE_BACK, self.BY_ME, **self.VALUES)


class Batches(Ledger):
    def fill(self, names):
        for number, name in enumerate(names):
            made = key(name) | {"n": {"N": str(number)}, "leases": value({"job#1": lease(PAST)})}
            self.dynamodb.put_item(TableName=TABLE, Item=made)

    def read(self, keys, **more):
        wanted = {TABLE: {"Keys": keys, "ConsistentRead": True} | more}
        return self.dynamodb.batch_get_item(RequestItems=wanted)

    def test_reads_a_hundred_keys_of_all_kinds(self):
        names = [f"{kind}#{number}" for kind in ("pool", "beat", "budget", "hist") for number in range(25)]
        self.fill(names[::2])
        answer = self.read([key(name) for name in names])
        found = {one["pk"]["S"]: one for one in answer["Responses"][TABLE]}
        self.assertCountEqual(names[::2], found)
        self.assertEqual(value({"job#1": lease(PAST)}), found["beat#1"]["leases"])
        self.assertEqual({}, answer["UnprocessedKeys"])

    def test_finds_nothing_of_what_is_absent(self):
        answer = self.read([key("pool#voice"), key("beat#i-0abc")])
        self.assertEqual(({TABLE: []}, {}), (answer["Responses"], answer["UnprocessedKeys"]))

    def test_wrong_batches_are_refused(self):
        cases = {
            "a hundred and one": [key(f"beat#{number}") for number in range(101)],
            "the same twice": [key("beat#1"), key("beat#1")],
            "half a key": [{"pk": {"S": "beat#1"}}],
            "another key": [key("beat#1") | {"n": {"N": "1"}}],
            "a key of another type": [key("beat#1") | {"sk": {"N": "1"}}],
            "none": [],
        }
        client = aws.client("dynamodb", parameter_validation=False)
        for name, keys in cases.items():
            with self.subTest(name):
                wanted = {TABLE: {"Keys": keys, "ConsistentRead": True}}
                self.assert_refused(INVALID, client.batch_get_item, RequestItems=wanted)

    def test_what_has_expired_stays(self):
        ttl = {"Enabled": True, "AttributeName": "expires_at"}
        self.dynamodb.update_time_to_live(TableName=TABLE, TimeToLiveSpecification=ttl)
        beat = key("beat#i-0abc") | {"expires_at": {"N": "1"}}
        self.dynamodb.put_item(TableName=TABLE, Item=beat)
        aws.advance(3 * 86400)
        self.assertEqual([beat], self.read([key("beat#i-0abc")])["Responses"][TABLE])
