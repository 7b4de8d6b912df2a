// Node's http module: absolute-form to the proxy, CONNECT by hand for https; redirects by hand.
'use strict';
const fs = require('fs');
const http = require('http');
const https = require('https');

const [action, url, file] = process.argv.slice(2);
const proxy = new URL(process.env.http_proxy);

function fail(error) {
  console.error('error: ' + error.message);
  process.exit(1);
}

function show(response) {
  if (response.statusCode === 302) {
    response.resume();
    return send('GET', response.headers.location);
  }
  console.log(response.statusCode);
  response.on('error', fail);
  response.pipe(process.stdout);
}

function send(method, target, body) {
  const to = new URL(target);
  const headers = { Host: to.host };
  if (body) headers['Content-Length'] = fs.statSync(body).size;
  if (to.protocol === 'https:') return tunnel(to);
  const request = http.request(
    { host: proxy.hostname, port: proxy.port, method, path: target, headers }, show);
  request.on('error', fail);
  if (body) fs.createReadStream(body).pipe(request);
  else request.end();
}

function tunnel(to) {
  const connect = http.request(
    { host: proxy.hostname, port: proxy.port, method: 'CONNECT', path: to.host });
  connect.on('connect', (answer, socket) => {
    if (answer.statusCode !== 200) return fail(new Error('CONNECT answered ' + answer.statusCode));
    const ca = fs.readFileSync(process.env.SSL_CERT_FILE);
    https.get({ socket, agent: false, host: to.hostname, path: to.pathname, ca }, show).on('error', fail);
  });
  connect.on('error', fail);
  connect.end();
}

send(action === 'post' ? 'POST' : 'GET', url, file);
