// Search runs in a web worker, and browsers start none for pages that are opened as files. Here a
// hidden frame takes its place. The theme would load such a script from another server.
(() => {
  if (location.protocol !== "file:") return;

  const PREPARE = `
    window.IFrameWorker = true;
    window.postMessage = (data) => parent.postMessage({ frameWorker: true, data }, "*");
    window.importScripts = (...urls) =>
      urls.reduce(
        (before, url) =>
          before.then(
            () =>
              new Promise((done, failed) => {
                const script = document.createElement("script");
                script.src = url;
                script.onload = done;
                script.onerror = failed;
                document.body.appendChild(script);
              }),
          ),
        Promise.resolve(),
      );`;

  class FrameWorker extends EventTarget {
    constructor(url) {
      super();
      this.onmessage = null;
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.appendChild(this.frame);
      const inside = this.frame.contentWindow.document;
      inside.open();
      inside.write(`<body><script>${PREPARE}<\/script><script src="${url}"><\/script></body>`);
      inside.close();
      this.ready = new Promise((done) => this.frame.addEventListener("load", done));
      window.addEventListener("message", (event) => this.heard(event));
    }

    heard(event) {
      if (event.source !== this.frame.contentWindow || !event.data.frameWorker) return;
      event.stopImmediatePropagation();
      const message = new MessageEvent("message", { data: event.data.data });
      this.dispatchEvent(message);
      if (this.onmessage) this.onmessage(message);
    }

    postMessage(data) {
      const message = new MessageEvent("message", { data });
      this.ready.then(() => this.frame.contentWindow.dispatchEvent(message));
    }

    terminate() {
      this.frame.remove();
    }
  }

  window.IFrameWorker = window.Worker = FrameWorker;
})();
