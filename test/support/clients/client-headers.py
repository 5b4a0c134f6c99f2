# -*- coding: utf-8 -*-
"""urllib and hmac: signs in headers, creates a task, then answers its callback.

URL USER REF; the secret in API_SECRET. Tries again after a 5xx, a time-out or a lost connection.
"""
import hashlib
import hmac
import json
import os
import sys
import time
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

url, user, ref = sys.argv[1:4]
secret = os.environ["API_SECRET"].encode("utf-8")


def send(op, tries=3):
    body = json.dumps({"ops": [op]}).encode("utf-8")
    stamp = str(int(time.time()))
    headers = {
        "Content-Type": "application/json",
        "X-API-Login": user,
        "X-API-Timestamp": stamp,
        "X-API-Signature": hmac.new(secret, stamp.encode() + body, hashlib.sha256).hexdigest(),
    }
    try:
        print(urlopen(Request(url + "/api/1/json", body, headers), timeout=10).read().decode("utf-8"))
    except HTTPError as error:
        if error.code < 500 or tries == 1:
            raise
        send(op, tries - 1)
    except URLError:
        if tries == 1:
            raise
        send(op, tries - 1)


send({"type": "create", "obj": "task", "conv_id": 1234, "ref": ref,
      "data": {"name": u"Київ", "amount": 10.0}})
send({"type": "modify", "obj": "task", "conv_id": 1234, "ref": ref, "data": {"paid": True}})
