import { api } from "./lib/api.js";

const state = document.createElement("p");
document.getElementById("main").append(state);
const health = await api("getHealth");
state.textContent = `Server: ${health.status}`;
