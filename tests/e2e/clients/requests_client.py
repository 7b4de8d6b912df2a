"""requests (python3-requests)."""

import sys

import requests

action, url = sys.argv[1:3]
try:
    if action == "post":
        with open(sys.argv[3], "rb") as body:
            response = requests.post(url, data=body, timeout=20)
    else:
        response = requests.get(url, stream=True, timeout=20)
except requests.RequestException as error:
    sys.exit("error: %s" % error)
print(response.status_code, flush=True)
for data in response.iter_content(chunk_size=None):
    sys.stdout.buffer.write(data)
    sys.stdout.flush()
