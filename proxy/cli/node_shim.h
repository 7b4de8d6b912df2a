// What Node preloads (NODE_OPTIONS) so that its own fetch and the common agents of its http and
// https modules use the proxy. Later versions do that by themselves with NODE_USE_ENV_PROXY
// (fetch: 22.21, 24.0; http and https: 22.21, 24.5); for those this does nothing. As there, a
// program that makes agents of its own goes its own way.
#pragma once

#include <string_view>

namespace sluice {

inline constexpr std::string_view kNodeShim =
    R"js(// Made by sluice. Lets fetch, http and https use HTTP_PROXY, HTTPS_PROXY and NO_PROXY where Node does not
// do so itself.
'use strict';
(() => {
  const [major, minor] = process.versions.node.split('.').map(Number);
  const fetchKnows = major >= 24 || (major === 22 && minor >= 21);
  const httpKnows = major > 24 || (major === 24 && minor >= 5) || (major === 22 && minor >= 21);
  if (httpKnows) return;
  const variable = (name) => process.env[name.toLowerCase()] || process.env[name];
  const proxies = {};
  for (const scheme of ['http', 'https']) {
    const written = variable(scheme.toUpperCase() + '_PROXY');
    if (written) proxies[scheme + ':'] = new URL(written);
  }
  if (!proxies['http:'] && !proxies['https:']) return;
  const exempt = (variable('NO_PROXY') || '').split(/[\s,]+/).filter(Boolean);
  const isExempt = (host) => exempt.some((name) => {
    const bare = name.replace(/^\*?\./, '');
    return name === '*' || host === bare || host.endsWith('.' + bare);
  });
  const credentials = (proxy) => (proxy.username
    ? { 'proxy-authorization': 'Basic ' + Buffer.from(
      decodeURIComponent(proxy.username) + ':' + decodeURIComponent(proxy.password)).toString('base64') }
    : {});

  // A socket to host:port, through the proxy.
  function tunnel(proxy, host, port, callback) {
    const authority = (host.includes(':') ? '[' + host + ']' : host) + ':' + port;
    require('http').request({
      host: proxy.hostname, port: proxy.port || 80, method: 'CONNECT', path: authority, agent: false,
      headers: { host: authority, ...credentials(proxy) },
    }).once('connect', (answer, socket) => {
      if (answer.statusCode === 200) return callback(null, socket);
      socket.destroy();
      callback(new Error('the proxy refused CONNECT ' + authority + ': ' + answer.statusCode), null);
    }).once('error', (error) => callback(error, null)).end();
  }

  function proxyHttp() {
    const http = require('http');
    const proxy = proxies['http:'];
    class ProxyAgent extends http.Agent {
      addRequest(request, options, ...rest) {
        const host = options.host || options.hostname || 'localhost';
        if (request.method === 'CONNECT' || options.socketPath || isExempt(host)) {
          return super.addRequest(request, options, ...rest);
        }
        const authority = (host.includes(':') ? '[' + host + ']' : host) +
          (options.port && Number(options.port) !== 80 ? ':' + options.port : '');
        const target = 'http://' + authority + request.path;
        const added = Object.entries(credentials(proxy));
        if (request._header) {  // it is written down already, and perhaps queued (Expect, headers as a list)
          const before = request._header;
          const lines = added.map(([name, value]) => name + ': ' + value + '\r\n').join('');
          request._header = before.replace(/^(\S+) \S+ (.*\r\n)/, (_, method, rest) => method + ' ' + target + ' ' + rest + lines);
          const queued = request.outputData && request.outputData[0];
          if (queued && String(queued.data).startsWith(before)) {
            queued.data = request._header + queued.data.slice(before.length);
          }
        } else {
          for (const [name, value] of added) request.setHeader(name, value);
        }
        request.path = target;
        return super.addRequest(request, { ...options, host: proxy.hostname, port: proxy.port || 80 }, ...rest);
      }
    }
    http.globalAgent = new ProxyAgent(http.globalAgent.options);
  }

  function proxyHttps() {
    const https = require('https');
    const proxy = proxies['https:'];
    class ProxyAgent extends https.Agent {
      createConnection(options, callback) {
        const host = options.host || options.hostname || 'localhost';
        if (options.socketPath || isExempt(host)) return super.createConnection(options, callback);
        tunnel(proxy, host, options.port || 443, (error, socket) => {
          if (error) return callback(error);
          callback(null, super.createConnection({ ...options, socket }));
        });
        return undefined;
      }
    }
    https.globalAgent = new ProxyAgent(https.globalAgent.options);
  }

  if (proxies['http:']) proxyHttp();
  if (proxies['https:']) proxyHttps();
  if (fetchKnows || typeof globalThis.fetch !== 'function') return;

  // For undici's Agent: a socket that is ready for the first request.
  function connect(options, callback) {
    const tls = require('tls');
    const secure = options.protocol === 'https:';
    const host = options.hostname.replace(/^\[|\]$/g, '');
    const port = options.port || (secure ? 443 : 80);
    const proxy = secure && !isExempt(host) ? proxies['https:'] : undefined;
    const settle = (socket, event) => {
      const failed = (error) => callback(error, null);
      socket.once('error', failed);
      socket.once(event, () => {
        socket.off('error', failed);
        callback(null, socket);
      });
    };
    const name = options.servername || (require('net').isIP(host) ? undefined : host);
    const seal = (socket) => settle(
      tls.connect({ host, port, socket, servername: name, ALPNProtocols: ['http/1.1'] }), 'secureConnect');
    if (secure && !proxy) return seal(undefined);
    if (!secure) return settle(require('net').connect({ host, port, noDelay: true }), 'connect');
    tunnel(proxy, host, port, (error, socket) => (error ? callback(error, null) : seal(socket)));
  }

  function makeAgent(Agent) {
    return new (class extends Agent {
      dispatch(options, handler) {
        const url = new URL(options.origin);
        const proxy = proxies['http:'];
        if (url.protocol !== 'http:' || !proxy || isExempt(url.hostname.replace(/^\[|\]$/g, ''))) {
          return super.dispatch(options, handler);
        }
        const added = { host: url.host, ...credentials(proxy) };
        const headers = Array.isArray(options.headers)
          ? [...options.headers, ...Object.entries(added).flat()] : { ...options.headers, ...added };
        return super.dispatch({ ...options, origin: proxy.origin, path: url.origin + options.path, headers }, handler);
      }
    })({ connect });
  }

  // undici is loaded by the first use; its own Agent is then known by this symbol.
  const original = globalThis.fetch;
  let installed = false;
  globalThis.fetch = function fetch(input, init) {
    if (!installed) {
      installed = true;
      void globalThis.Response;
      const key = Symbol.for('undici.globalDispatcher.1');
      const agent = globalThis[key];
      if (agent && agent.constructor.name === 'Agent') {
        Object.defineProperty(globalThis, key, {
          value: makeAgent(agent.constructor), writable: true, enumerable: false, configurable: false });
      }
    }
    return original.call(this, input, init);
  };
})();
)js";

}  // namespace sluice
