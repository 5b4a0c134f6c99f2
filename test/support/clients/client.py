# -*- coding: utf-8 -*-
"""urllib and hashlib, for Python 2 and 3: creates a task, then answers its callback.

URL USER REF; the secret in API_SECRET. json.dumps writes ", " separators and \\uXXXX.
"""
import hashlib
import json
import os
import sys
import time

try:
    from urllib.request import Request, urlopen
except ImportError:
    from urllib2 import Request, urlopen

url, user, ref = sys.argv[1:4]
secret = os.environ["API_SECRET"].encode("utf-8")


def send(op):
    body = json.dumps({"ops": [op], "action": "user"}, sort_keys=True).encode("utf-8")
    stamp = str(int(time.time()))
    signed = stamp.encode("utf-8") + secret + body + secret
    signature = hashlib.sha1(signed).hexdigest()
    path = "%s/api/1/json/%s/%s/%s" % (url, user, stamp, signature)
    answer = urlopen(Request(path, body, {"Content-Type": "application/json"})).read()
    print(answer.decode("utf-8"))


send({"type": "create", "obj": "task", "conv_id": 1234, "ref": ref,
      "data": {"name": u"Київ", "amount": 10.0}})
send({"type": "modify", "obj": "task", "conv_id": 1234, "ref": ref, "data": {"paid": True}})
