import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

// `npm run dev` passes /api on to HANDIWORK_SERVER, the URL that `handiwork serve --no-token` prints.
const server = process.env["HANDIWORK_SERVER"];

export default defineConfig({
  plugins: [react()],
  build: { outDir: "../handiwork/server/app", emptyOutDir: true, target: "es2022", modulePreload: { polyfill: false } },
  server: { proxy: server ? { "/api": { target: server, ws: true, changeOrigin: true } } : {} },
  test: { include: ["tests/**/*.test.ts"] },
});
