import { expect, test, vi } from "vitest";
import { persistently } from "./loading";

test("what fails is tried again", async () => {
  const load = vi.fn().mockRejectedValueOnce(new Error("gone")).mockResolvedValueOnce("code");
  await expect(persistently(load, [1, 1])).resolves.toBe("code");
  expect(load).toHaveBeenCalledTimes(2);
});

test("what never goes well fails as the last try did", async () => {
  const load = vi.fn().mockRejectedValue(new Error("gone"));
  await expect(persistently(load, [1, 1])).rejects.toThrow("gone");
  expect(load).toHaveBeenCalledTimes(3);
});
