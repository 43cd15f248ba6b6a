import { Page } from "@/kit/Page";

export default function Mix() {
  return <Page title="Mix">{null}</Page>;
}
