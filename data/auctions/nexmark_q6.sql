-- The average of the winning bids' prices of each seller's last eleven auctions, as of each auction won.
-- NEXMark, Query 6, as nexmark/nexmark puts it for Flink: the ten rows before and the current one, by the time of the
-- winning bid.
-- Unique ids (auction.id) and closed auctions (bid.auction) decide who won; a seller who sells nothing any more
-- (auction.seller) is answered when the last of their auctions has closed.
-- Verdict, followed: answers when groups close, keeps what is open.

CREATE TABLE auction (
  id BIGINT, itemName STRING, description STRING, initialBid BIGINT, reserve BIGINT, dateTime TIMESTAMP,
  expires TIMESTAMP, seller BIGINT, category BIGINT, extra STRING
) USING punctuated_xml
OPTIONS (path '${AUCTIONS}/auction.xml', rowTag 'auction',
  schemes 'id; seller; dateTime prefix', maxBytesPerSlice '55m');

CREATE TABLE bid (
  auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, dateTime TIMESTAMP, extra STRING
) USING punctuated_xml
OPTIONS (path '${AUCTIONS}/bid.xml', rowTag 'bid',
  schemes 'auction; bidder; dateTime prefix', maxBytesPerSlice '320m');

WITH won AS (
  SELECT id, seller, price, dateTime
  FROM (
    SELECT A.id, A.seller, B.price, B.dateTime,
           ROW_NUMBER() OVER (PARTITION BY A.id, A.seller ORDER BY B.price DESC, B.dateTime) AS place
    FROM auction A, bid B
    WHERE A.id = B.auction AND B.dateTime BETWEEN A.dateTime AND A.expires
  )
  WHERE place = 1
)
SELECT seller, id,
  AVG(price) OVER (PARTITION BY seller ORDER BY dateTime, id ROWS BETWEEN 10 PRECEDING AND CURRENT ROW) AS avg_price
FROM won;
