import { fileURLToPath } from "node:url";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

const bundle = fileURLToPath(new URL("../src/turnmill/server/static", import.meta.url));
const server = process.env.TURNMILL_SERVER ?? "http://127.0.0.1:8377";

export default defineConfig({
  base: "./", // the server says where the page lies, in <base>
  plugins: [react()],
  resolve: { alias: { "@": fileURLToPath(new URL("./src", import.meta.url)) } },
  build: {
    outDir: bundle,
    emptyOutDir: true,
    assetsInlineLimit: 0, // the content security policy takes no data: addresses
    modulePreload: { polyfill: false },
  },
  server: { proxy: { "/v1": server, "/healthz": server, "/readyz": server } },
  test: {
    environment: "happy-dom",
    include: ["src/**/*.test.{ts,tsx}"],
    setupFiles: ["src/test_setup.ts"],
    restoreMocks: true,
  },
});
