import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

// `npm run dev` speaks to a server that was started with `handiwork serve --no-token`.
const server = process.env["HANDIWORK_SERVER"] ?? "http://127.0.0.1:8321";

export default defineConfig({
  plugins: [react()],
  build: { outDir: "../handiwork/server/app", emptyOutDir: true, target: "es2022", modulePreload: { polyfill: false } },
  server: { proxy: { "/api": { target: server, ws: true, changeOrigin: true } } },
  test: { include: ["tests/**/*.test.ts"] },
});
