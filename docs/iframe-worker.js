// Browsers start no workers from the disk. There the site's search runs in a hidden frame, which is spoken to as a
// worker is. The theme looks for the name IFrameWorker.
if (location.protocol === "file:") {
  window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super()
      const frame = document.createElement("iframe")
      frame.hidden = true
      document.body.appendChild(frame)
      this.inside = frame.contentWindow
      this.inside.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }))
      const script = this.inside.document.createElement("script")
      this.ready = new Promise(loaded => script.addEventListener("load", loaded))
      script.src = url
      this.inside.document.body.appendChild(script)
    }

    postMessage(message) {
      this.ready.then(() => {
        const data = structuredClone(message)
        this.inside.dispatchEvent(new this.inside.MessageEvent("message", { data }))
      })
    }

    terminate() {
      this.inside.frameElement.remove()
    }
  }
  window.Worker = window.IFrameWorker
}
