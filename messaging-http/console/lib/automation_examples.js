// Automations to begin with. What only the workspace knows, templates and segments, is chosen afterwards.

const DAYS = (value) => ({ value, unit: "days" });

/** `{ id, name, text, body }`; the texts are translated where they are shown. */
export const EXAMPLES = [
  {
    id: "welcome", name: "Welcome", text: "Greets new contacts, and writes once more to those who did not open the first message.",
    body: {
      trigger: { kind: "contact_created", config: {} }, re_entry: "never",
      graph: {
        entry: "greet",
        nodes: [
          { id: "greet", kind: "send", config: { category: "marketing" }, name: "Greeting" },
          { id: "wait", kind: "wait", config: { duration: DAYS(3) } },
          { id: "opened", kind: "condition", config: { filter: { type: "message", event: "open", within: { since_entry: true } } }, name: "Opened it?" },
          { id: "again", kind: "send", config: { category: "marketing" }, name: "Second try" },
        ],
        edges: [{ from: "greet", to: "wait" }, { from: "wait", to: "opened" }, { from: "opened", to: "again", branch: "no" }],
      },
    },
  },
  {
    id: "cart", name: "Forgotten cart", text: "Reminds of a cart that is left for two hours, and stops as soon as there is an order.",
    body: {
      trigger: { kind: "event", config: { name: "cart_updated" } }, re_entry: "after_exit", re_entry_key: "event.cart_id",
      graph: {
        entry: "order",
        goal: { type: "event", name: "order_placed" },
        nodes: [
          { id: "order", kind: "wait_event", config: { on: { type: "event", name: "order_placed" }, timeout: { value: 2, unit: "hours" } } },
          { id: "bought", kind: "exit", config: { reason: "bought" } },
          { id: "remind", kind: "send", config: { category: "marketing" }, name: "Reminder" },
          { id: "day", kind: "wait", config: { duration: DAYS(1) } },
          { id: "last", kind: "send", config: { category: "marketing" }, name: "Last reminder" },
        ],
        edges: [{ from: "order", to: "bought", branch: "event" }, { from: "order", to: "remind", branch: "timeout" }, { from: "remind", to: "day" }, { from: "day", to: "last" }],
      },
    },
  },
  {
    id: "win-back", name: "Win-back", text: "Writes to contacts who have become quiet, and tags those who do not come back.",
    body: {
      trigger: { kind: "segment_enter", config: {} }, re_entry: "after_exit",
      graph: {
        entry: "miss",
        exit_conditions: [{ type: "event", name: "order_placed" }],
        nodes: [
          { id: "miss", kind: "send", config: { category: "marketing" }, name: "We miss you" },
          { id: "click", kind: "wait_event", config: { on: { type: "message", event: "click" }, timeout: DAYS(7) } },
          { id: "back", kind: "exit", config: { reason: "came back" } },
          { id: "offer", kind: "send", config: { category: "marketing" }, name: "An offer" },
          { id: "month", kind: "wait", config: { duration: DAYS(30) } },
          { id: "lost", kind: "add_tag", config: { tag: "lost" } },
        ],
        edges: [{ from: "miss", to: "click" }, { from: "click", to: "back", branch: "event" }, { from: "click", to: "offer", branch: "timeout" }, { from: "offer", to: "month" }, { from: "month", to: "lost" }],
      },
    },
  },
];
