// What Node preloads (NODE_OPTIONS) so that its own fetch uses the proxy. Node 22.21, 24 and later
// do that by themselves with NODE_USE_ENV_PROXY; then this does nothing.
#pragma once

#include <string_view>

namespace sluice {

inline constexpr std::string_view kNodeShim =
    R"js(// Made by sluice. Lets fetch use HTTP_PROXY, HTTPS_PROXY and NO_PROXY where Node does not do so itself.
'use strict';
(() => {
  const [major, minor] = process.versions.node.split('.').map(Number);
  if (major >= 24 || (major === 22 && minor >= 21) || typeof globalThis.fetch !== 'function') return;
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
    const authority = (host.includes(':') ? '[' + host + ']' : host) + ':' + port;
    require('http').request({
      host: proxy.hostname, port: proxy.port || 80, method: 'CONNECT', path: authority, agent: false,
      headers: { host: authority, ...credentials(proxy) },
    }).once('connect', (answer, socket) => {
      if (answer.statusCode === 200) return seal(socket);
      socket.destroy();
      callback(new Error('the proxy refused CONNECT ' + authority + ': ' + answer.statusCode), null);
    }).once('error', (error) => callback(error, null)).end();
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
