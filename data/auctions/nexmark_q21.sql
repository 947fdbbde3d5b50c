-- Bids with the number of the channel by which they came, by its name or from the URL.
-- NEXMark, Query 21, as nexmark/nexmark puts it for Flink, where a URL without a number gives null and not an empty text.
-- Nothing is kept, and every punctuation goes on, those of auctions, bidders and times.
-- Verdict, followed: answers at once, keeps nothing.

CREATE TABLE bid (
  auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, dateTime TIMESTAMP, extra STRING
) USING punctuated_xml
OPTIONS (path '${AUCTIONS}/bid.xml', rowTag 'bid',
  schemes 'auction; bidder; dateTime prefix', maxBytesPerSlice '320m');

SELECT auction, bidder, price, channel,
       CASE lower(channel)
         WHEN 'apple' THEN '0'
         WHEN 'google' THEN '1'
         WHEN 'facebook' THEN '2'
         WHEN 'baidu' THEN '3'
         ELSE regexp_extract(url, '(&|^)channel_id=([^&]*)', 2)
       END AS channel_id
FROM bid
WHERE regexp_extract(url, '(&|^)channel_id=([^&]*)', 2) <> '' OR lower(channel) IN ('apple', 'google', 'facebook', 'baidu');
