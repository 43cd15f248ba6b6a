import { Page } from "@/kit/Page";

export default function Jobs() {
  return <Page title="Jobs">{null}</Page>;
}
