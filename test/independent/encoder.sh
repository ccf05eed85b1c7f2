#!/bin/sh
# An encoder made of openssl, curl and Python alone; nothing of Gatehouse is in it. It shows firmware authors the whole
# way, against a running demo:
#
#   test/independent/encoder.sh DIR/demo.json my-encoder [WORK-DIR]
set -eu

demo=$1
id=$2
work=${3:-$(mktemp -d)}
here=$(cd "$(dirname "$0")" && pwd)
python=/usr/bin/python3

field() {
  "$python" -c 'import functools, json, sys
print(functools.reduce(lambda value, key: value[key], sys.argv[2].split("."), json.load(open(sys.argv[1]))))' "$@"
}

mkdir -p "$work"
cd "$work"
umask 077

# The factory: a key that stays in the device, and a certificate by the vendor whose one CN is the encoder's id.
openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out device.key
openssl req -new -key device.key -subj "/CN=$id" -out device.csr
cat > device.ext <<EXTENSIONS
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
EXTENSIONS
openssl x509 -req -in device.csr -days 3650 -extfile device.ext -set_serial "0x5a$(openssl rand -hex 15)" \
  -CA "$(field "$demo" factory.caCert)" -CAkey "$(field "$demo" factory.caKey)" -out device.crt 2> openssl.log

# The operational key, drawn on site, and the proof that the device wants it: docs/encoder-protocol.md, Registration.
openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out operational.key
openssl pkey -in operational.key -pubout -out operational.pub
{
  echo 'GATEHOUSE-ENCODER-REGISTRATION-V1'
  echo "$id"
  openssl x509 -in device.crt -outform DER | openssl dgst -sha256 -r | cut -d ' ' -f 1
  openssl pkey -pubin -in operational.pub -outform DER | openssl base64 -A
  echo
} > message
openssl dgst -sha256 -sign device.key -out signature message

"$python" -c 'import base64, json
read = lambda name: open(name, "rb").read()
print(json.dumps({
    "deviceCert": read("device.crt").decode(),
    "publicKey": read("operational.pub").decode(),
    "signature": base64.b64encode(read("signature")).decode(),
    "name": "independent encoder",
}))' > body.json
curl --silent --show-error --fail-with-body --cacert "$(field "$demo" caFile)" \
  --header "Authorization: Bearer $(field "$demo" tokens.service-tool)" \
  --header 'Content-Type: application/json' --request PUT --data @body.json \
  --output answer.json "$(field "$demo" baseUrl)/encoder/$id" || { cat answer.json >&2; exit 1; }

# What came back: the client certificate with its issuer, and the anchor of the endpoint at the end of the bundle.
field answer.json cert > client.crt
field answer.json secrets.iot-credentials | openssl base64 -d -A > bundle.pem
"$python" -c 'import re
print(re.findall("-----BEGIN[^-]+-----[^-]+-----END[^-]+-----", open("bundle.pem").read())[-1])' > anchor.crt
openssl verify -CAfile anchor.crt -untrusted client.crt -purpose sslclient client.crt > /dev/null

exec "$python" "$here/encoder.py" "$id" "$(field answer.json endpoint)" client.crt operational.key anchor.crt
